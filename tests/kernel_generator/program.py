"""Writes programs of many kernels: CUDA, and plain C++ for the oracle."""

import re
from dataclasses import dataclass

from .layout import messy

DYNAMIC = re.compile(r"extern __shared__ ([\w ]+?) (\w+)\[\];")


@dataclass
class Program:
    """Source text, and the lines that each kernel has in it, from 1."""

    text: str
    lines: dict

    def kernel_at(self, line):
        """The seed of the kernel that has a line, or None."""
        return next((s for s, (a, b) in self.lines.items() if a <= line <= b), None)


def shape(sizes):
    """{x, y, z}."""
    return "{" + ", ".join(map(str, sizes)) + "}"


def runner(kernel, call):
    """The host's function that launches a kernel."""
    launch = kernel.launch
    symbols = "".join(f"  symbol({name});\n" for name in launch.symbols)
    return (
        f"static void run_{kernel.seed}(const Launch& l) "
        f"{{\n{''.join(launch.before)}  {call}\n{symbols}  (void)l;\n}}\n"
    )


def undefine(kernel):
    """Ends the kernel's macros."""
    return "".join(f"#undef {name}\n" for name in kernel.undefined)


def cuda_kernel(kernel):
    """A kernel and its launch in CUDA C++."""
    code = kernel.code.text()
    if kernel.messy:
        code = messy(code, kernel.seed)
    launch = kernel.launch
    call = f"{launch.called}<<<l.blocks(), l.shape(), {launch.dynamic}>>>({launch.arguments});"
    return kernel.top.text() + code + runner(kernel, call) + undefine(kernel)


def oracle_kernel(kernel):
    """The same in plain C++: blocks run one after another, so what they share is static."""
    text = kernel.top.text() + kernel.code.text()
    memory = "".join(f"{t} {name}[1024];\n" for t, name in DYNAMIC.findall(text))
    text = DYNAMIC.sub(r"extern \1 \2[];", text)
    text = text.replace("static __shared__", "static").replace("__shared__", "static")
    launch = kernel.launch
    waits = "true" if kernel.fibers else "false"
    call = (
        f"oracle_run(l.blocks(), l.shape(), {waits}, [&] "
        f"{{ {launch.called}({launch.arguments}); }});"
    )
    return memory + text + runner(kernel, call) + undefine(kernel)


def written(kernels, one, head):
    """A program of kernels, each written by `one`."""
    parts, lines, line = [head], {}, head.count("\n") + 1
    for kernel in kernels:
        text = one(kernel)
        lines[kernel.seed] = (line, line + text.count("\n") - 1)
        line += text.count("\n")
        parts.append(text)
    parts.append("static const Entry kernels[] = {\n")
    for kernel in kernels:
        launches = ", ".join(f"{{{shape(g)}, {shape(b)}, {n}}}" for g, b, n in kernel.launches)
        parts.append(f'  {{"{kernel.name}", run_{kernel.seed}, {{{launches}}}}},\n')
    parts.append(
        "};\nint main(int argc, char** argv) {\n"
        f"  return run_all(kernels, {len(kernels)}, argc, argv);\n}}\n"
    )
    return Program("".join(parts), lines)


def cuda_program(kernels):
    """A .cu file."""
    return written(kernels, cuda_kernel, '#include "harness.h"\n')


def oracle_program(kernels):
    """A .cc file."""
    return written(kernels, oracle_kernel, '#define KERNEL_ORACLE\n#include "harness.h"\n')
