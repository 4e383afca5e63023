"""Builds the rungs of the GEMM ladder, checks each, and times it beside cuBLAS on a GPU.

    python3 tools/gemm_ladder.py              # writes docs/gemm_ladder.json and .md
    python3 tools/gemm_ladder.py --page       # writes the page anew from what was measured
    python3 tools/gemm_ladder.py --tune       # the best tile and parts of K for each shape
    python3 tools/gemm_ladder.py --build      # only compiles, for which no GPU is needed

It needs nvcc, and PyTorch for cuBLAS and for references in float64. Each rung is checked on odd
sizes, whichever way its operands lie, and after it was timed; it runs in a process of its own that
is ended after some seconds, so that a kernel that hangs takes nothing with it.
"""

import argparse
import ctypes
import json
import multiprocessing
import statistics
import subprocess
import sys
from datetime import date
from pathlib import Path

from gemm_rungs import (
    KIT,
    ODD,
    PARTS,
    RUNGS,
    SKINNY,
    SOURCES,
    SPLIT_RUNGS,
    SQUARE,
    STREAM,
    TILES,
    TUNED,
    WARP_TILES,
    build_all,
    code_of,
    library,
    shapes,
    tile_of,
    tile_rung,
    tuned,
    wanted,
)

KEPT, PAGE = KIT / "docs/gemm_ladder.json", KIT / "docs/gemm_ladder.md"
TRIED = KIT / "docs/gemm_tiles.json"
#: Relative error, in the norm of the whole, that each kind of number may have.
BOUNDS = {"float32": 1e-5, "tf32": 1e-3, "bf16": 1e-5}
SECONDS = 25
#: Shares of cuBLAS of the same steps in Boehm's ladder (2022), on an RTX A6000.
PUBLIC = {"naive": 0.013, "coalesced": 0.085, "shared memory": 0.128, "registers, 1-D": 0.365,
          "registers, 2-D": 0.687, "vectors": 0.784, "warp tiles": 0.937}  # fmt: skip


def loaded(rung, folder):
    """The library, and a function of (a, b, c, shape) that launches on PyTorch's stream."""
    import torch

    found = ctypes.CDLL(str(library(rung, folder)))
    address, whole = ctypes.c_void_p, ctypes.c_int
    found.gemm.argtypes = [address] * 3 + [whole] * 5 + [address]

    def call(a, b, c, shape):
        stream = torch.cuda.current_stream().cuda_stream
        error = found.gemm(a.data_ptr(), b.data_ptr(), c.data_ptr(), *shape, stream)
        if error:
            raise RuntimeError(f"{rung.name}: CUDA error {error} for {shape}")

    return found, call


def operands(shape, kind):
    """Random a and b as they lie in memory, and a poisoned c."""
    import torch

    m, n, k, flips_a, flips_b = shape
    dtype = torch.bfloat16 if kind == "bf16" else torch.float32
    a = torch.randn((k, m) if flips_a else (m, k), device="cuda").to(dtype)
    b = torch.randn((n, k) if flips_b else (k, n), device="cuda").to(dtype)
    return a, b, torch.full((m, n), float("nan"), device="cuda")


def as_used(a, b, shape):
    """The same as m x k and k x n."""
    return a.T if shape[3] else a, b.T if shape[4] else b


def error_of(a, b, c, shape):
    """||c - ab|| / ||ab||; of NaN infinity."""
    x, y = (each.double() for each in as_used(a, b, shape))
    wanted = x @ y
    found = ((c.double() - wanted).norm() / wanted.norm()).item()
    return found if found == found else float("inf")


def check(call, shapes, kind):
    """Raises where a rung is wrong; returns the largest error."""
    import torch

    worst = 0.0
    for shape in shapes:
        a, b, c = operands(shape, kind)
        call(a, b, c, shape)
        torch.cuda.synchronize()
        error = error_of(a, b, c, shape)
        if error > BOUNDS[kind]:
            raise RuntimeError(f"{shape}: relative error {error:.1e}")
        worst = max(worst, error)
    return worst


def microseconds(function):
    """Quartiles of the time of one call, of many in a captured graph."""
    import torch

    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def once(what):
        first.record()
        what()
        last.record()
        last.synchronize()
        return first.elapsed_time(last) * 1e3

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        once(function)
        about = once(function)
        count = max(1, min(20, int(1000 / about)))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            for _ in range(count):
                function()
        once(graph.replay)
        samples = max(3, min(15, int(5e5 / (about * count))))
        times = [once(graph.replay) / count for _ in range(samples)]
    return statistics.quantiles(times, n=4)


def cublas(shape, kind):
    """Quartiles of PyTorch's product, which is cuBLAS's."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    a, b, c = operands(shape, kind)
    x, y = as_used(a, b, shape)
    c = c.to(a.dtype)
    return microseconds(lambda: torch.matmul(x, y, out=c))


def timed(call, shape, kind):
    """Quartiles and the error after it."""
    a, b, c = operands(shape, kind)
    times = microseconds(lambda: call(a, b, c, shape))
    return {"us": times, "error": error_of(a, b, c, shape)}


def measured(rung, folder):
    """A rung's errors and times, beside cuBLAS's in the same process."""
    _, call = loaded(rung, folder)
    found = {"code": code_of(rung), "error": check(call, ODD, rung.kind), "shapes": []}
    has_skinny = rung.kind == "float32" or rung.has_tiles
    for shape in (SQUARE[rung.kind], *(SKINNY if has_skinny else ())):
        row = {"shape": shape, **timed(tuned_call(rung, shape, folder) or call, shape, rung.kind)}
        found["shapes"].append({**row, "cublas": cublas(shape, rung.kind)})
    return found


def tuned_call(rung, shape, folder):
    """The call of a rung with the tile and parts that were tuned for a shape; or None."""
    known = tuned(rung.kind) if rung.has_tiles else {}
    if shape not in known:
        return None
    tile, parts = known[shape]
    library, call = loaded(tile_rung(tile_of(rung, tile, parts), rung), folder)
    if rung.file not in (WARP_TILES, STREAM):
        ctypes.c_int.in_dll(library, "gemm_parts").value = parts
    return call


def swept(tile, kind, folder):
    """(shape, parts, microseconds) of a tile, for all shapes that it may be good for."""
    found, call = loaded(tile_rung(tile, SPLIT_RUNGS[kind]), folder)
    check(call, ODD[4:], kind)
    parts_of = ctypes.c_int.in_dll(found, "gemm_parts")
    rows = []
    for shape in shapes(kind):
        m, n, k, *_ = shape
        if m * n >= 1 << 22 and tile[0] * tile[1] < 1 << 14:
            continue
        tiles = -(-m // tile[0]) * -(-n // tile[1])
        for parts in (1,) if tile[-1] == "kWhole" else PARTS:
            if parts > 1 and (parts > k // 32 or tiles * parts > 132 * 12):
                continue
            parts_of.value = parts
            rows.append((shape, parts, timed(call, shape, kind)["us"][1]))
    return rows


def baseline(kind):
    """cuBLAS's times for all shapes."""
    return [(shape, cublas(shape, kind)) for shape in shapes(kind)]


def alone(function, *given):
    """What a function returns, in a process of its own; {"failed": why} if it does not."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def child():
        try:
            there.send(function(*given))
        except Exception as error:
            there.send({"failed": f"{type(error).__name__}: {error}"[:300]})

    process = context.Process(target=child)
    process.start()
    there.close()
    try:
        found = here.recv() if here.poll(SECONDS) else {"failed": f"took over {SECONDS} s"}
    except EOFError:
        found = {"failed": "its process ended"}
    process.kill()
    process.join()
    return found


def climb(folder):
    """Measures all rungs, and writes what was found."""
    rows = {rung.name: alone(measured, rung, folder) for rung in RUNGS}
    for name, row in rows.items():
        if "failed" in row:
            print(f"{name}: {row['failed']}")
            continue
        for each in row["shapes"]:
            us, base = each["us"][1], each["cublas"][1]
            print(f"{name:24} {each['shape']!s:32} {us:10.1f} us, cuBLAS {base:10.1f}, "
                  f"share {base / us:.3f}, error {each['error']:.1e}")  # fmt: skip
    return rows


def tune(kinds, folder):
    """The best tile and parts for each shape, of some kinds of number, as they were measured."""
    found = {kind: tune_kind(kind, folder) for kind in kinds}
    kept = json.loads(TUNED.read_text())
    tables = {name: [json.dumps(row) for row in rows] for name, rows in kept.items()}
    for kind, tried in found.items():
        tables[kind] = []
        for each in tried:
            _, parts, tile = each["tried"][0]
            tables[kind].append(json.dumps([each["shape"], tile, parts]))
    texts = [f'"{name}": [\n' + ",\n".join(rows) + "\n]" for name, rows in tables.items()]
    TUNED.write_text("{\n" + ",\n".join(texts) + "\n}\n")
    return found


def tune_kind(kind, folder):
    """The same of one kind of number."""
    bases = dict(alone(baseline, kind))
    best = {}
    for tile in TILES[kind]:
        rows = alone(swept, tile, kind, folder)
        if isinstance(rows, dict):
            print(f"{tile}: {rows['failed']}")
            continue
        for shape, parts, us in rows:
            best.setdefault(shape, []).append((us, parts, tile))
    found = []
    for shape, rows in best.items():
        rows.sort()
        base = bases[shape][1]
        print(f"{shape}: cuBLAS {base:.2f} us")
        for us, parts, tile in rows[:4]:
            print(f"   {us:8.2f} us, share {base / us:.2f}, {tile} in {parts} parts")
        found.append({"shape": shape, "cublas": base, "tried": rows})
    return found


def says(rung):
    """What the head of a rung's file says it is."""
    brief = (SOURCES / rung.file).read_text().split("\\brief ")[1].split("\n")[0]
    return brief.partition(": ")[2]


def shape_name(shape):
    """m x n x k in words; an operand that lies transposed has a T."""
    m, n, k, flips_a, flips_b = shape
    return f"{m}x{k}{'T' * flips_a} {k}x{n}{'T' * flips_b}"


def page(kept):
    """The text of docs/gemm_ladder.md."""
    lines = [
        "# The GEMM ladder\n\n",
        "`tools/gemm_ladder.py` on {device}, driver {driver}, {date}, PyTorch {torch}.\n".format(
            **kept
        ),
        "The files lie in `solution/src/gemm/`, a rung each; its head says what changes and why. "
        "Beside cuBLAS,\nas PyTorch calls it, in the same process: share is cuBLAS's time over the "
        "rung's. Medians with quartiles,\nin microseconds. The error is relative, in the norm of "
        "the whole product, against float64. What is changed\nsince has other code now. The last "
        "column has the shares of the same steps in a public ladder, on another\nGPU: an RTX A6000 "
        "(Boehm, 2022).\n\n",
        "| rung | what | numbers | n | us | quartiles | cuBLAS | share | error | public |\n"
        "|---|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
    ]
    skinny = []
    for rung in RUNGS:
        row = kept["rows"].get(rung.name, {"failed": "is new"})
        changed = "" if row.get("code") == code_of(rung) else " (changed since)"
        begin = f"| {rung.name}{changed} | {says(rung)} | {rung.kind} |"
        if "failed" in row:
            lines.append(f"{begin} | | | | | not measured: {row['failed']} | |\n")
            continue
        square, *others = row["shapes"]
        low, middle, high = square["us"]
        base = square["cublas"][1]
        lines.append(
            f"{begin} {square['shape'][0]} | {middle:,.0f} | {low:,.0f} to {high:,.0f} | "
            f"{base:,.0f} | {base / middle:.3f} | {square['error']:.1e} | "
            f"{PUBLIC.get(rung.name, '')} |\n"
        )
        shares = [f"{each['cublas'][1] / each['us'][1]:.2f}" for each in others]
        skinny += [f"| {rung.name} | {' | '.join(shares)} |\n"] if shares else []
    names = [shape_name(shape) for shape in SKINNY]
    lines += [
        "\n## Products of an MLP\n\nForward, gradient of the weights, gradient of the inputs of "
        "784-256-100-10 at batch 1,000, float32: shares of\ncuBLAS. T marks an operand that lies "
        "transposed. From warp tiles on, with the tile and parts that were tuned for split-K.\n"
        "These shares differ by up to a tenth from run to run, and more on a busy machine.\n\n",
        f"| rung | {' | '.join(names)} |\n|---|{'--:|' * len(names)}\n",
        *skinny,
    ]
    return "".join(lines)


def device():
    """(the GPU, its driver)."""
    said = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(said, capture_output=True, text=True).stdout.splitlines()[0].split(", ")


def main():
    """Measures, and writes files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", action="store_true", help="only compile")
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    parser.add_argument(
        "--tune", nargs="*", choices=list(TILES), help="try tiles and parts; of one kind of number"
    )
    parser.add_argument("--built", type=Path, default=KIT / "build/gemm", help="libraries")
    parser.add_argument("--output", type=Path, help="another file for what was measured")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page(json.loads(KEPT.read_text())))
        return 0
    kinds = options.tune or list(TILES)
    is_tuning = options.tune is not None
    build_all(wanted(kinds if is_tuning else ()), options.built)
    if options.build:
        return 0
    import torch  # before processes are forked, which then need not

    said = {"device": device()[0], "driver": device()[1], "date": date.today().isoformat(),
            "torch": torch.__version__}  # fmt: skip
    rows = tune(kinds, options.built) if is_tuning else climb(options.built)
    kept = {**said, "rows": rows}
    output = options.output or (TRIED if is_tuning else KEPT)
    output.write_text(json.dumps(kept) + "\n")
    if not (is_tuning or options.output):
        PAGE.write_text(page(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
