"""Each rung of the GEMM ladder multiplies on the emulated GPU as numpy does."""

import ctypes
import functools
import itertools
import json
import subprocess
import sys

import numpy as np
import pytest

import gemm_ladder
from dlsys import ndarray
from gemm_rungs import KIT, RUNGS, SOURCES, SPLIT, code_of, tile_rung

GPU = ndarray.gpu(0)
#: m, n, k: one element, parts of a tile, a tile and one more, lines of four; K in parts.
SIZES = [(1, 1, 1), (33, 65, 127), (129, 31, 70), (4, 8, 12), (20, 36, 256)]
LAYOUTS = list(itertools.product((0, 1), repeat=2))
SPLIT_K = next(rung for rung in RUNGS if rung.file == SPLIT)
#: Besides the rungs as they are, tiles whose threads copy a slice in rounds that are not whole, or
#: copies of several columns, and have sums of lines that are no packs of four.
EMULATED = [rung for rung in RUNGS if "wgmma" not in rung.name]
EMULATED += [tile_rung((*tile, 4, 3, 2), SPLIT_K)
             for tile in ((112, 32, 32, 4), (100, 32, 32, 5), (72, 32, 16, 6))]  # fmt: skip


@functools.cache
def command(source, target):
    """What make says of a build."""
    made = ["make", "-s", "--no-print-directory", "-C", KIT / "solution", "kernels"]
    made += [f"SOURCE={source}", f"TARGET={target}", f"PYTHON={sys.executable}"]
    return subprocess.run(made, capture_output=True, text=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A function that gives the library of a rung."""
    folder = tmp_path_factory.mktemp("rungs")

    def build(rung):
        source = folder / f"{rung.name.replace(' ', '_').replace(',', '')}.cu"
        if not source.exists():
            text = (SOURCES / rung.file).read_text().replace('"../', f'"{SOURCES}/../')
            source.write_text(rung.lines + text.replace('"own.cuh"', f'"{SOURCES}/own.cuh"')
                              .replace('"ladder.h"', f'"{SOURCES}/ladder.h"'))  # fmt: skip
        done = command(source, source.with_suffix(".so"))
        assert done.returncode == 0, done.stderr
        library = ctypes.CDLL(str(source.with_suffix(".so")))
        library.gemm.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 5 + [ctypes.c_void_p]
        return library

    return build


def address(array):
    """Where an array on the GPU lies."""
    return array.handle.contents.data


def rounded(x, bits):
    """float32 with so many bits after the first one: to nearest, halves away from 0."""
    word = np.ascontiguousarray(x, np.float32).view(np.uint32)
    cut = 23 - bits
    return ((word + np.uint32(1 << (cut - 1))) & np.uint32((1 << 32) - (1 << cut))).view(np.float32)


def product(library, a, b, flips, kind="float32"):
    """What a rung makes of a and b, which lie transposed where flips say so."""
    m, n, k = len(a), b.shape[1], b.shape[0]
    there = []
    for each, is_flipped in zip((a, b), flips, strict=True):
        lies = np.ascontiguousarray(each.T if is_flipped else each)
        if kind == "bf16":  # two numbers in a word
            halves = (lies.view(np.uint32) >> 16).astype(np.uint16).ravel()
            lies = np.append(halves, np.zeros(halves.size % 2, np.uint16)).view(np.float32)
        there.append(ndarray.array(lies, GPU))
    c = ndarray.array(np.full((m, n), np.nan, np.float32), GPU)
    assert library.gemm(*map(address, (*there, c)), m, n, k, *flips, None) == 0
    return c.asnumpy()


@pytest.mark.parametrize("rung", EMULATED, ids=lambda rung: rung.name)
def test_a_rung_multiplies_odd_sizes_that_lie_either_way(rung, built):
    library, random = built(rung), np.random.default_rng(0)
    bits = {"float32": 23, "tf32": 10, "bf16": 7}[rung.kind]
    for (m, n, k), flips in itertools.product(SIZES, LAYOUTS):
        a, b = (random.normal(size=size).astype(np.float32) for size in ((m, k), (k, n)))
        if bits < 23:
            a, b = rounded(a, bits), rounded(b, bits)
        found = product(library, a, b, flips, rung.kind)
        wanted = a.astype(float) @ b
        bound = 1e-6 * (np.abs(a).astype(float) @ np.abs(b)) + 1e-30
        assert (np.abs(found - wanted) <= bound).all(), (m, n, k, flips)


def test_parts_of_k_give_the_same_product_and_leave_nothing_behind(built):
    library = built(next(rung for rung in RUNGS if rung.name == "split-K"))
    random = np.random.default_rng(1)
    a, b = (random.normal(size=size).astype(np.float32) for size in ((40, 300), (300, 30)))
    parts = ctypes.c_int.in_dll(library, "gemm_parts")
    for parts.value in (1, 2, 5, 9, 3):
        found = product(library, a, b, (0, 0))
        np.testing.assert_allclose(found, a.astype(float) @ b, rtol=0, atol=1e-4)
        np.testing.assert_array_equal(product(library, a, b, (0, 0)), found)


@pytest.mark.parametrize("size", [(300, 200, 70), (129, 31, 300), (600, 500, 20)])
def test_shares_of_all_slices_give_the_same_product_and_leave_nothing_behind(size, built):
    library, random = built(next(rung for rung in RUNGS if rung.name == "stream-K")), np.random
    m, n, k = size
    a, b = (random.default_rng(1).normal(size=s).astype(np.float32) for s in ((m, k), (k, n)))
    shares, cut = (ctypes.c_int.in_dll(library, name) for name in ("gemm_parts", "gemm_cut"))
    # Fewer and more than tiles, and 132; cut are what is left of whole waves, or more of them.
    for shares.value, cut.value in itertools.product((1, 2, 3, 5, 7, 8, 13, 40, 0), (0, 1, 99)):
        found = product(library, a, b, (0, 0))
        np.testing.assert_allclose(found, a.astype(float) @ b, rtol=0, atol=1e-4)
        np.testing.assert_array_equal(product(library, a, b, (0, 0)), found)


@pytest.mark.parametrize("name", ["warp tiles", "split-K", "stream-K"])
def test_a_product_of_nothing_is_empty_or_zero(name, built):
    library = built(next(rung for rung in RUNGS if rung.name == name))
    for m, n, k in itertools.product((0, 3), repeat=3):
        c = ndarray.array(np.full((3, 3), np.nan, np.float32), GPU)
        a = ndarray.array(np.ones((3, 3), np.float32), GPU)
        assert library.gemm(*map(address, (a, a, c)), m, n, k, 0, 0, None) == 0
        wanted = np.full((m, n), k) if m and n else np.full((3, 3), np.nan)
        np.testing.assert_array_equal(c.asnumpy()[: len(wanted), : wanted.shape[1]], wanted)


@pytest.mark.parametrize("kind", ["float32", "tf32"])
def test_parts_in_a_cluster_give_the_same_bits_as_in_memory(kind, built):
    """On a GPU without clusters, as the emulated one, both add up in memory."""
    rung = next(rung for rung in RUNGS if rung.file == SPLIT and rung.kind == kind)
    how = "kTf32" if kind == "tf32" else "kAsTheyLie"
    tiles = [(32, 64, 16, 4, 4, 4, 4, how, where) for where in ("kInMemory", "kInCluster")]
    libraries = [built(tile_rung(tile, rung)) for tile in tiles]
    random = np.random.default_rng(3)
    for (m, n, k), flips in itertools.product([(70, 130, 600), (31, 9, 545)], LAYOUTS):
        a, b = (random.normal(size=size).astype(np.float32) for size in ((m, k), (k, n)))
        for count in (2, 7, 8, 16, 17):
            for library in libraries:
                ctypes.c_int.in_dll(library, "gemm_parts").value = count
            in_memory, in_cluster = (product(each, a, b, flips) for each in libraries)
            np.testing.assert_array_equal(in_cluster, in_memory)
        bound = (1e-6 if kind == "float32" else 1e-3) * (np.abs(a).astype(float) @ np.abs(b))
        assert (np.abs(in_memory - a.astype(float) @ b) <= bound).all()


def test_an_epilogue_adds_a_bias_and_cuts_what_is_negative(built):
    library = built(next(rung for rung in RUNGS if rung.name == "epilogue"))
    random = np.random.default_rng(2)
    a, b, bias = (random.normal(size=s).astype(np.float32) for s in ((37, 50), (50, 21), (21,)))
    there = ndarray.array(bias, GPU)
    ctypes.c_void_p.in_dll(library, "gemm_bias").value = address(there)
    found = product(library, a, b, (1, 1))
    np.testing.assert_allclose(found, np.maximum(a.astype(float) @ b + bias, 0), atol=1e-5)


@pytest.mark.skipif(not ndarray.is_emulated(), reason="a real GPU")
def test_what_only_hopper_has_is_refused_in_one_line(tmp_path):
    done = command(SOURCES / "r13_wgmma.cu", tmp_path / "wgmma.so")
    assert "the emulated GPU has no PTX (asm); hint:" in done.stderr


def test_the_page_says_which_rungs_have_other_code_than_was_timed():
    kept = json.loads(gemm_ladder.KEPT.read_text())
    assert gemm_ladder.page(kept) == gemm_ladder.PAGE.read_text()
    for rung in RUNGS[:2]:
        kept["rows"][rung.name]["code"] = {"naive": "other"}.get(rung.name, code_of(rung))
    page = gemm_ladder.page(kept)
    assert "| naive (changed since) |" in page
    assert "| coalesced |" in page


def test_comments_and_white_space_are_no_change_of_a_rung():
    rung = RUNGS[0]
    says = code_of(rung)
    assert code_of(rung, lambda path: "/* new */ " + path.read_text() + "\n// and this") == says
    assert code_of(rung, lambda path: path.read_text() + "int x;") != says
