"""Times convolutions on a GPU by each method, beside the fastest that cuDNN has.

    python3 tools/convolution_methods.py           # writes docs/convolution_methods.json and .md
    python3 tools/convolution_methods.py --page    # writes the page anew from what was measured

It needs nvcc, and PyTorch for cuDNN and for references in float64. Each time is that of one call
among many in a CUDA graph, and each result is checked.
"""

import argparse
import functools
import itertools
import json
import statistics
import subprocess
import sys
from datetime import date
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
KEPT, PAGE = KIT / "docs/convolution_methods.json", KIT / "docs/convolution_methods.md"
sys.path.insert(0, str(KIT / "solution/python"))

#: N, C, H and W, F of the layers of a ResNet-18 for images of 32 x 32; kernels of 3 x 3.
LAYERS = [(128, 64, 32, 64), (128, 128, 16, 128), (128, 256, 8, 256), (128, 512, 4, 512)]
#: The same of small convolutions, whose launches cost as much as their work.
SMALL = [(images, 4, 32, filters) for images in (1, 4, 16) for filters in (1, 4, 16)]
KINDS = ("value", "data", "weights")
METHODS = ("implicit", "wgmma", "im2col", "winograd2", "winograd4", "cudnn")
#: Relative error, in the norm of the whole, that each kind of number may have.
BOUNDS = {"float32": 1e-4, "tf32": 2e-3, "bf16": 1e-2}
_CALLS, _SAMPLES = 10, 7


def microseconds(replay, calls):
    """Quartiles of the time of one call, of some in a graph that `replay` starts."""
    import torch

    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    replay()
    times = []
    for _ in range(_SAMPLES):
        first.record()
        replay()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last) * 1e3 / calls)
    return statistics.quantiles(times, n=4)


def operands(shape):
    """x, w, g on the GPU, and the value and both gradients in float64."""
    import torch

    images, channels, size, filters = shape
    torch.manual_seed(0)
    x = torch.randn(images, channels, size, size, device="cuda")
    w = torch.randn(filters, channels, 3, 3, device="cuda") / (9 * channels) ** 0.5
    g = torch.randn(images, filters, size, size, device="cuda")
    doubles = [each.double() for each in (x, w, g)]
    return (x, w, g), {kind: called(kind, *doubles) for kind in KINDS}


def called(kind, x, w, g):
    """PyTorch's convolution, or one gradient of it."""
    import torch

    if kind == "value":
        return torch.nn.functional.conv2d(x, w, padding=1)
    wanted = (kind == "data", kind == "weights", False)
    said = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1, wanted)
    found = torch.ops.aten.convolution_backward(g, x, w, None, *said)
    return found[KINDS.index(kind) - 1]


def with_channels_last(arrays, numbers):
    """Arrays of the GPU with their channels last, as such numbers."""
    import torch

    found = [each.bfloat16() if numbers == "bf16" else each for each in arrays]
    return [each.to(memory_format=torch.channels_last) for each in found]


def of_pytorch(kind, arrays, numbers, is_dense=False):
    """Quartiles of cuDNN's time, with the algorithm that PyTorch finds the fastest, as arrays lie
    or with channels last; of bfloat16 so alone. is_dense: whether its result is to lie dense."""
    lies = [with_channels_last(arrays, numbers)] + ([arrays] if numbers != "bf16" else [])
    return min(
        (_of_pytorch(kind, each, numbers, is_dense) for each in lies), key=lambda times: times[1]
    )


def _of_pytorch(kind, arrays, numbers, is_dense):
    import torch

    def call():
        found = called(kind, *arrays)
        return found.contiguous() if is_dense else found

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = numbers == "tf32"
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            for _ in range(_CALLS):
                call()
    torch.cuda.synchronize()
    return microseconds(graph.replay, _CALLS)


def goes_by_channel(method, numbers):
    """Whether images lie with their channels last in a network that computes so."""
    return method == "wgmma" and numbers != "float32"


def node_of(kind, method, numbers):
    """(a node whose value it is, variables for what it is made of); where it goes by channel,
    images are fed, and come, as (N, H, W, C)."""
    from dlsys import ops
    from dlsys.ops.convolution import convolution_gradient_op, convolution_op

    fed = [ops.variable(name) for name in "xwg"][: 2 if kind == "value" else 3]
    inputs, said = list(fed), {"padding": 1, "method": method}
    by_channel = goes_by_channel(method, numbers)
    if by_channel:
        inputs = [ops.transpose(each, (0, 3, 1, 2)) for each in fed]
        inputs[1] = ops.cast(fed[1], "bfloat16") if numbers == "bf16" else fed[1]
    if kind == "value":
        found = convolution_op(*inputs, **said)
    else:
        found = convolution_gradient_op(*inputs, of=KINDS.index(kind) - 1, **said)
    turned = by_channel and kind != "weights"
    return ops.transpose(found, (0, 2, 3, 1)) if turned else found, fed


def find_tile(kind, method, arrays, numbers):
    """Measures the likely tiles of a method, and has programs use the best."""
    from dlsys import dtypes, ndarray
    from dlsys.backend import choosing
    from dlsys.backend.program import Program

    (node, _), shapes = node_of(kind, method, "float32"), [tuple(each.shape) for each in arrays]
    said = dtypes.BFLOAT16 if numbers == "bf16" else dtypes.FLOAT32
    trials = choosing._Trials(Program, ndarray.gpu(0), numbers == "tf32", node, shapes, said)
    try:
        trials._best_tile(method)
    except (RuntimeError, NotImplementedError, AssertionError) as failure:  # a DeviceError is one
        print(f"no tile of {method}: {failure}", file=sys.stderr)


def program_of(kind, method, arrays, numbers):
    """A program that computes it, fed."""
    from dlsys import autodiff, ndarray
    from dlsys.backend.fusion import fuse
    from dlsys.backend.program import Program

    node, inputs = node_of(kind, method, numbers)
    if goes_by_channel(method, numbers):
        images = [each.permute(0, 2, 3, 1) for each in with_channels_last(arrays, numbers)]
        arrays = (images[0], arrays[1], images[2])
    fed = {v: ndarray.from_dlpack(a) for v, a in zip(inputs, arrays, strict=False)}
    kinds = {v: (a.shape, a.dtype) for v, a in fed.items()}
    order = autodiff.find_topo_sort([node])
    passes = [fuse]  # as a step has it; a cast of weights that are laid from float32 is not read
    made = Program(order, [node], kinds, ndarray.gpu(0), tf32=numbers == "tf32", passes=passes)
    made.feed(fed)
    return made


def of_method(kind, method, arrays, numbers, wanted):
    """{"us": quartiles, "error": relative}, or {"failed": why}."""
    import torch

    try:
        made = program_of(kind, method, arrays, numbers)
        found = torch.from_dlpack(made.run()[0]).double()
        turned = goes_by_channel(method, numbers) and kind != "weights"
        found = found.permute(0, 3, 1, 2) if turned else found
        error = ((found - wanted).norm() / wanted.norm()).item()
        if not error < BOUNDS[numbers] * (100 if "winograd" in method else 1):
            return {"failed": f"its error is {error:.0e}"}
        captured, results = made.record_rounds({}, _CALLS)
        found = {"us": microseconds(captured.replay, _CALLS), "error": error}
        del captured, results
        captured = behind_the_laying(made)
        if captured:
            found["laid_us"] = microseconds(captured.replay, _CALLS)
        return found
    except (RuntimeError, NotImplementedError, ValueError, AssertionError) as failure:
        return {"failed": f"{type(failure).__name__}: {failure}"[:200]}


def behind_the_laying(made):
    """Some calls of a program that has run, recorded without what lays the weights, which a net
    does once for all convolutions, as cuDNN is given them as it wants them; None if none does."""
    from dlsys.backend.capture import Captured
    from dlsys.backend.hopper_last import LayWeights

    if not isinstance(made.instructions[0], LayWeights):
        return None
    behind = made.instructions[1:]
    return Captured(made._steps, 1, behind, made._memory_of, rounds=range(_CALLS))


def of_numbers(methods, numbers):
    """Those of the methods that such numbers have on their own."""
    return [each for each in methods if numbers != "bf16" or each == "wgmma"]


def compile_all(shapes, methods):
    """Compiles the kernels of all programs in one go."""
    import torch

    from dlsys import dtypes
    from dlsys.backend import choosing, gpu, hopper, hopper_last, implicit, kernels
    from dlsys.backend.windows import Windows

    keys = [*implicit.keys(False), *implicit.keys(True)]
    for images, channels, size, filters in shapes:
        of_each = ((images, channels), (filters, channels), (images, filters))
        sides = (size, 3, size)
        arrays = [
            torch.empty(*two, side, side, device="cuda")
            for two, side in zip(of_each, sides, strict=True)
        ]
        for kind, method, numbers in itertools.product(KINDS, methods, BOUNDS):
            if method in of_numbers(methods, numbers):
                said = kind, method, arrays, numbers
                keys += kernels.asked_by(functools.partial(program_of, *said))
        if "wgmma" in methods:
            windows = Windows((size, size), (3, 3), padding=(1, 1))
            sides, most = (images, channels, filters), choosing.TILED["wgmma"][1]
            for kind in KINDS:
                made = hopper.plans(kind, windows, sides, 3)[:most]
                keys += [("hopper", kind == "weights", tile) for tile, _ in made]
                for dtype in (dtypes.BFLOAT16, dtypes.FLOAT32):
                    made = hopper_last.plans(kind, windows, sides, dtype)[:most]
                    keys += [hopper_last.key_of(kind, tile, dtype) for tile, _ in made]
    kernels.kernels(gpu, keys)


def measured(shapes, methods, keep):
    """A row for each shape, kind of number and kind of convolution; keep(rows) after each."""
    from dlsys.backend import choosing

    compile_all(shapes, [method for method in methods if method != "cudnn"])
    rows = []
    for shape in shapes:
        arrays, wanted = operands(shape)
        for numbers in BOUNDS:
            some = of_numbers(methods, numbers)
            for kind in KINDS if some else ():
                for method in choosing.TILED.keys() & set(some):
                    find_tile(kind, method, arrays, numbers)
                times = {m: of_method(kind, m, arrays, numbers, wanted[kind]) for m in some}
                row = {"shape": shape, "numbers": numbers, "kind": kind, "methods": times}
                row["pytorch"] = of_pytorch(kind, arrays, numbers)
                if kind == "weights":
                    row["pytorch_dense"] = of_pytorch(kind, arrays, numbers, is_dense=True)
                rows.append(row)
                keep(rows)
                said = {m: round(t["us"][1], 1) if "us" in t else t for m, t in times.items()}
                said["PyTorch"] = round(row["pytorch"][1], 1)
                print(shape, numbers, kind, said, flush=True)
    return rows


def best_of_cudnn(row):
    """Microseconds, by PyTorch or by a call of its own."""
    own = row["methods"].get("cudnn", {})
    return min([row["pytorch"][1], *([own["us"][1]] if "us" in own else [])])


def own_best(row):
    """The fastest method that is not cuDNN's: (microseconds, name)."""
    found = [(t["us"][1], m) for m, t in row["methods"].items() if "us" in t and m != "cudnn"]
    return min(found, default=(float("nan"), ""))


def share_if_alike(row):
    """The share of the fastest own method, where the weights of both lie as each wants them, and
    gradients of both dense; or nothing, where that is no other."""
    own, base = own_best(row)[0], best_of_cudnn(row)
    found = [t["laid_us"][1] for t in row["methods"].values() if "laid_us" in t]
    if found:
        return f"{base / min(own, *found):.2f}"
    if "pytorch_dense" not in row:
        return ""
    dense = best_of_cudnn({**row, "pytorch": row["pytorch_dense"]})
    return f"{dense / own:.2f}" if dense > base else ""


def cell(found):
    """A time, or nothing."""
    return f"{found['us'][1]:.1f}" if "us" in found else ""


def of_layers(rows):
    """Lines of the table of layers."""
    methods = " | ".join(METHODS)
    lines = [
        f"| N, C, H = W, F | numbers | what | {methods} | PyTorch | share of implicit | of best "
        f"| of best, alike |\n|---|---|---|{'--:|' * (len(METHODS) + 4)}\n"
    ]
    for row in rows:
        base, methods = best_of_cudnn(row), row["methods"]
        cells = [cell(methods.get(method, {})) for method in METHODS]
        implicit = methods.get("implicit", {})
        share = f"{base / implicit['us'][1]:.2f}" if "us" in implicit else ""
        lines.append(
            f"| {', '.join(map(str, row['shape']))} | {row['numbers']} | {row['kind']} | "
            f"{' | '.join(cells)} | {row['pytorch'][1]:.1f} | {share} | "
            f"{base / own_best(row)[0]:.2f} | {share_if_alike(row)} |\n"
        )
    return lines


def of_small(rows):
    """Lines of the table of small convolutions: sums of the value and both gradients."""
    lines = ["| N | F | numbers | own | cuDNN | share |\n|--:|--:|---|--:|--:|--:|\n"]
    groups = {}
    for row in rows:
        groups.setdefault((tuple(row["shape"]), row["numbers"]), []).append(row)
    for ((images, _, _, filters), numbers), group in groups.items():
        own = sum(own_best(row)[0] for row in group)
        base = sum(map(best_of_cudnn, group))
        lines.append(
            f"| {images} | {filters} | {numbers} | {own:.1f} | {base:.1f} | {base / own:.2f} |\n"
        )
    return lines


def page(kept):
    """The text of docs/convolution_methods.md."""
    return "".join([
        "# Convolutions by method\n\n",
        "`tools/convolution_methods.py` on {device}, driver {driver}, {date}, PyTorch {torch}, "
        "cuDNN {cudnn}.\n".format(**kept),
        "Microseconds of one call, medians, of some in a CUDA graph, with all that a method copies "
        "before and\nafter: weights, too, which a net lays by one launch for all. cudnn is the "
        "method of that name; PyTorch\ncalls the same library, and tries each of its algorithms, "
        "and images with their channels last. A share is\nthe time of the faster of these two "
        "over that of the implicit method, or of the fastest own one;\nalike: without what lays "
        "its weights, as PyTorch has them with their channels last; and where PyTorch\ncopies its "
        "gradient of them, which lies so, too, to the dense order that own methods leave.\n"
        "Winograd's methods have im2col's gradient of weights. In float32, wgmma adds three "
        "products in TF32,\nof high and low parts; in TF32 and bf16 it is given images with "
        "their channels last.\n\n",
        "## Layers of a ResNet-18\n\nKernels of 3 x 3, stride and padding 1.\n\n",
        *of_layers(kept["layers"]),
        "\n## Small convolutions\n\nC = 4, 32 x 32, kernels of 3 x 3: the value and both gradients "
        "together, each by its\nfastest method.\n\n",
        *of_small(kept["small"]),
    ])  # fmt: skip


def device():
    """(the GPU, its driver)."""
    said = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(said, capture_output=True, text=True).stdout.strip().split(", ")


def main():
    """Measures, and writes files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    parser.add_argument("--output", type=Path, default=KEPT, help="the file of what was measured")
    options = parser.parse_args()
    if not options.page:
        import torch

        said = dict(zip(("device", "driver"), device(), strict=True))
        said |= {"date": date.today().isoformat(), "torch": torch.__version__}
        said["cudnn"] = torch.backends.cudnn.version()
        kept = {**said, "layers": [], "small": []}

        def keep(name, rows):
            kept[name] = rows
            options.output.write_text(json.dumps(kept) + "\n")

        measured(SMALL, ("implicit", "direct", "cudnn"), functools.partial(keep, "small"))
        measured(LAYERS, METHODS, functools.partial(keep, "layers"))
    PAGE.write_text(page(json.loads(options.output.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
