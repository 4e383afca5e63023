"""The rungs of the GEMM ladder, the shapes that they are asked for, and how they are built."""

import dataclasses
import hashlib
import itertools
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
SOURCES = KIT / "solution/src/gemm"
#: What compiled steps read: of each kind of number [shape, tile, parts of K].
TUNED = KIT / "solution/python/dlsys/backend/gemm_tiles.json"
COMPILE = ("nvcc", "-std=c++17", "-O3", "-gencode=arch=compute_90a,code=sm_90a", "-lineinfo",
           "-Xcompiler", "-fPIC", "-shared")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Rung:
    """A file of the ladder, what it multiplies, and lines that come before it."""

    name: str
    file: str
    kind: str = "float32"
    lines: str = ""

    @property
    def has_tiles(self):
        """Whether its tile is a macro: those of src/backend/gemm.cuh."""
        return self.file in (WARP_TILES, SPLIT, STREAM, EPILOGUE)


WARP_TILES, SPLIT = "r08_warp_tiles.cu", "r09_split_k.cu"
STREAM, EPILOGUE = "r10_stream_k.cu", "r11_epilogue.cu"
RUNGS = (
    Rung("naive", "r01_naive.cu"),
    Rung("coalesced", "r02_coalesced.cu"),
    Rung("shared memory", "r03_shared.cu"),
    Rung("registers, 1-D", "r04_register_1d.cu"),
    Rung("registers, 2-D", "r05_register_2d.cu"),
    Rung("vectors", "r06_vectors.cu"),
    Rung("asynchronous", "r07_async.cu"),
    Rung("warp tiles", WARP_TILES),
    Rung("split-K", SPLIT),
    Rung("stream-K", STREAM),
    Rung("epilogue", EPILOGUE),
    Rung("split-K, TF32", SPLIT, "tf32", "#define TILE 128, 128, 16, 8, 8, 3, 1, kTf32\n"),
    Rung("mma, bf16", "r12_mma.cu", "bf16"),
    Rung("mma, TF32", "r12_mma.cu", "tf32", "#define TF32\n"),
    Rung("wgmma, bf16", "r13_wgmma.cu", "bf16"),
    Rung("wgmma, TF32", "r13_wgmma.cu", "tf32", "#define TF32\n"),
)

#: Kind of number -> the rung that is tuned.
SPLIT_RUNGS = {rung.kind: rung for rung in RUNGS if rung.file == SPLIT}

#: m, n, k, whether a and b are transposed: sizes that no tile divides.
ODD = tuple(
    (*sizes, *flips)
    for sizes in ((1, 1, 1), (33, 65, 127), (129, 31, 257), (4, 8, 12), (200, 300, 1000))
    for flips in itertools.product((0, 1), repeat=2)
)
SQUARE = {"float32": (4096, 4096, 4096, 0, 0), "tf32": (8192, 8192, 8192, 0, 1),
          "bf16": (8192, 8192, 8192, 0, 1)}  # fmt: skip


def products(layers, batch):
    """Those of an MLP's step: forward, weights' and inputs' gradients of each layer."""
    found = []
    for before, after in itertools.pairwise(layers):
        found += [(batch, after, before, 0, 0), (before, after, batch, 1, 0)]
        found += [(batch, before, after, 0, 1)]
    return tuple(found)


#: The MLP's at batch 1,000; and, tuned besides, the largest of those nets that the bench times, and
#: squares as its products have them.
SKINNY = products((784, 256, 100, 10), 1000)
OF_BENCH = (*products((400, 256, 64, 10), 5000), *(
    (n, n, n, *flips) for n in (512, 1024, 2048, 4096) for flips in ((0, 0), (1, 0), (0, 1))
))  # fmt: skip
#: What --tune tries: rows, columns, depth; rows, columns of a thread; stages, blocks. See gemm.cuh.
_FLOAT_TILES = (
    (128, 128, 16, 8, 8, 3, 2), (128, 128, 16, 8, 8, 3, 1), (128, 128, 8, 16, 8, 4, 2),
    (256, 128, 8, 16, 8, 4, 1), (256, 128, 16, 16, 8, 3, 1), (128, 256, 16, 8, 16, 3, 1),
    (128, 128, 32, 8, 8, 2, 2), (128, 128, 16, 16, 8, 3, 2), (128, 128, 8, 8, 8, 4, 2),
    (64, 64, 16, 8, 4, 4, 3), (64, 64, 32, 8, 4, 3, 2), (64, 64, 32, 4, 4, 3, 2),
    (64, 64, 16, 4, 4, 4, 3), (64, 32, 16, 4, 4, 4, 4), (64, 32, 32, 4, 4, 4, 4),
    (32, 64, 16, 4, 4, 4, 4), (32, 64, 32, 4, 4, 4, 4), (32, 32, 32, 4, 4, 4, 4),
    (128, 64, 16, 8, 4, 4, 2), (128, 64, 16, 8, 8, 4, 2), (128, 64, 32, 8, 8, 2, 2),
    (64, 64, 16, 8, 8, 4, 4), (64, 32, 16, 8, 4, 4, 6), (32, 32, 64, 4, 4, 2, 4),
    (128, 128, 8, 16, 8, 3, 2, "kTurned"), (128, 128, 8, 16, 8, 4, 2, "kTurned"),
    (128, 128, 16, 16, 8, 3, 2, "kTurned"), (128, 128, 32, 8, 8, 2, 1),
    (128, 256, 16, 8, 16, 3, 1, "kTurned"), (128, 256, 32, 8, 16, 2, 1, "kTurned"),
    (128, 256, 8, 8, 16, 4, 1, "kTurned"), (256, 128, 8, 16, 8, 4, 1, "kTurned"),
    (128, 256, 32, 16, 8, 2, 1, "kTurned"), (256, 128, 32, 16, 8, 2, 1, "kTurned"),
    (128, 256, 16, 16, 8, 3, 1, "kTurned"), (256, 128, 16, 16, 8, 3, 1, "kTurned"),
    (112, 32, 32, 4, 4, 3, 2), (112, 32, 32, 4, 4, 2, 2), (112, 32, 16, 4, 4, 4, 2),
    (112, 32, 32, 4, 4, 3, 3), (112, 32, 32, 4, 4, 2, 3), (64, 64, 32, 8, 4, 2, 2),
    (100, 32, 32, 5, 4, 2, 2), (100, 64, 32, 5, 4, 3, 1), (200, 32, 32, 5, 4, 3, 1),
    (80, 32, 32, 5, 4, 3, 4), (80, 64, 32, 5, 4, 3, 2), (40, 64, 32, 5, 4, 3, 4),
    *((*tile, "kAsTheyLie", "kInCluster") for tile in (
        (64, 64, 16, 4, 4, 4, 3), (32, 64, 16, 4, 4, 4, 4), (32, 64, 32, 4, 4, 4, 4),
        (32, 32, 32, 4, 4, 4, 4), (32, 32, 32, 4, 4, 2, 4), (32, 32, 64, 4, 4, 2, 4),
        (32, 32, 16, 4, 4, 4, 6), (64, 32, 32, 4, 4, 2, 4), (64, 64, 32, 8, 4, 3, 2),
        (32, 32, 48, 4, 4, 3, 4),
    )),
)  # fmt: skip
_TF32_TILES = (
    (128, 128, 32, 8, 8, 3, 1), (128, 64, 32, 8, 4, 3, 2), (64, 64, 32, 4, 4, 4, 2),
    (64, 64, 16, 4, 4, 4, 3), (64, 32, 32, 4, 4, 4, 3), (64, 32, 64, 4, 4, 3, 2),
    (32, 64, 32, 4, 4, 4, 3), (32, 64, 64, 4, 4, 3, 2), (32, 32, 32, 4, 4, 4, 4),
    (32, 32, 64, 4, 4, 3, 4), (64, 64, 32, 8, 4, 4, 2),
    (64, 64, 64, 4, 4, 3, 1),
    (128, 128, 16, 8, 8, 4, 2), (128, 128, 32, 16, 8, 3, 1), (256, 128, 16, 16, 8, 4, 1),
    (256, 128, 32, 16, 8, 3, 1), (128, 256, 32, 16, 8, 3, 1), (128, 256, 16, 16, 8, 4, 1),
)  # fmt: skip


def whole(tile):
    """The same tile where K is in one part."""
    return (*(*tile, "kAsTheyLie")[:8], "kWhole")


def shapes(kind):
    """Those that are tuned for a kind of number. Large products in TF32 are cuBLAS's."""
    of_bench = [shape for shape in OF_BENCH if kind == "float32" or shape[0] != shape[1]]
    return list(dict.fromkeys((*SKINNY, *of_bench, SQUARE[kind])))


def _both(tiles):
    """Tiles with K in one part, and, but for the large ones and those in clusters, in several."""
    cut = [tile for tile in tiles if tile[0] * tile[1] < 1 << 14]
    return (*cut, *map(whole, (tile for tile in tiles if len(tile) < 9)))


TILES = {
    "float32": _both(_FLOAT_TILES),
    "tf32": _both([(*tile, "kTf32") for tile in _TF32_TILES]),
}
#: Of K; those of a tile that is whole are one.
PARTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16)


def tuned(kind):
    """Shape -> (tile, parts) of what was tuned."""
    rows = json.loads(TUNED.read_text())[kind]
    return {tuple(shape): (tuple(tile), parts) for shape, tile, parts in rows}


def tile_of(rung, tile, parts):
    """The tile that a rung has where so many parts are best: warp tiles have one."""
    return whole(tile) if parts == 1 or rung.file == WARP_TILES else tile


def tile_rung(tile, rung):
    """A rung with another tile."""
    text = ", ".join(map(str, tile))
    name = f"{rung.name} {'_'.join(map(str, tile))}"
    return dataclasses.replace(rung, name=name, lines=f"#define TILE {text}\n")


def code_of(rung, read=Path.read_text):
    """A hash of what a rung is compiled from, without comments and white space."""
    names = [SOURCES / rung.file, SOURCES / "ladder.h"]
    if rung.has_tiles:
        names += [SOURCES / "own.cuh", SOURCES.parent / "backend/gemm.cuh"]
        names += [SOURCES.parent / "backend/gemm_pieces.cuh"]
    text = rung.lines + "\n".join(map(read, names))
    code = re.sub(r"/\*.*?\*/|//[^\n]*|\s", "", text, flags=re.DOTALL)
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def library(rung, folder):
    """The path of a rung's library, compiled if it is not there."""
    name = rung.name.replace(",", "").replace(" ", "_")
    built, source = folder / f"{name}.so", folder / f"{name}.cu"
    if not built.exists():
        source.write_text(f'{rung.lines}#include "{SOURCES / rung.file}"\n')
        subprocess.run([*COMPILE, source, "-o", built], check=True)
    return built


def wanted(kinds):
    """The rungs to build: with all tiles of some kinds of number; without any, with the tuned ones
    of the shapes that are timed."""
    if kinds:
        return [tile_rung(tile, SPLIT_RUNGS[kind]) for kind in kinds for tile in TILES[kind]]
    found = dict.fromkeys(RUNGS)
    for rung in RUNGS:
        if rung.has_tiles:
            known = tuned(rung.kind)
            for shape in known.keys() & {*SKINNY, SQUARE[rung.kind]}:
                found[tile_rung(tile_of(rung, *known[shape]), rung)] = None
    return list(found)


def build_all(rungs, folder):
    """Compiles what is not there, on all cores."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(lambda rung: library(rung, folder), rungs))
