"""python -m dlsys.occupancy: what limits the occupancy of a kernel, what a change would give."""

import argparse
import sys

from . import compiled
from .limits import CAPABILITIES, Launch, changes, occupancy
from .picture import picture

_EXAMPLES = """examples:
  python -m dlsys.occupancy --threads 256 --registers 40 --shared 16384
  python -m dlsys.occupancy --threads 256 --registers 40 --capability 8.6 --svg occupancy.svg
  python -m dlsys.occupancy build/lib/libc_runtime_api.so --kernel softmax
  python -m dlsys.occupancy src/gpu_op.cu --threads 1024       compiles it by nvcc

Registers and shared memory of a file are those of its machine code, by cuobjdump of the CUDA
toolkit; the emulated GPU has no registers. Dynamic shared memory is the launch's: --shared adds it.
"""


def parser():
    """The options."""
    found = argparse.ArgumentParser(
        prog="python -m dlsys.occupancy", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    found.add_argument("file", nargs="?", help="a library, an object file, a cubin or a .cu file")
    found.add_argument("--kernel", default="", metavar="NAME", help="a part of a kernel's name")
    found.add_argument("--threads", type=int, default=256, metavar="N",
                       help="of a block (default: 256)")  # fmt: skip
    found.add_argument("--registers", type=int, metavar="N", help="of a thread")
    found.add_argument("--shared", type=int, default=0, metavar="BYTES",
                       help="of a block; beside a file, the dynamic part")  # fmt: skip
    found.add_argument("--capability", choices=CAPABILITIES,
                       help="default: that of the GPU, or else 9.0")  # fmt: skip
    found.add_argument("--svg", metavar="FILE", help="a picture of the last kernel")
    return found


def told(launch, on, name):
    """Lines on one launch."""
    now = occupancy(launch, on)
    yield "%s: %s, capability %s" % (name, _said(launch), on.capability)
    for resource, blocks in now.room.items():
        sign = "<" if resource in now.limits else " "
        yield "  %-14s has room for %4d blocks %s" % (resource, blocks, sign)
    yield "  so %d blocks, %d of %d warps: %.0f %%" % (
        now.blocks, now.warps, on.warps, 100 * now.share)  # fmt: skip
    if not now.blocks:
        yield "  no GPU of this capability starts it"
    better = changes(launch, on)
    for other, there in better:
        yield "  with %s: %.0f %%" % (_difference(launch, other), 100 * there.share)
    if now.limits and not better:
        yield "  no single number changes that"


def _said(launch):
    words = "%d threads a block, %d registers a thread, %d bytes of shared memory a block"
    return words % (launch.threads, launch.registers, launch.shared)


def _difference(launch, other):
    if other.threads != launch.threads:
        return "%d threads a block" % other.threads
    if other.registers != launch.registers:
        return "%d registers a thread" % other.registers
    return "%d bytes of shared memory a block" % other.shared


def launches(options, on):
    """[(name, Launch)] of what was asked for.

    Raises:
        ValueError: nothing was asked for, or no kernel has that name.
    """
    if options.file is None:
        if options.registers is None:
            raise ValueError("no kernel; hint: a file, or --registers N")
        return [("kernel", Launch(options.threads, options.registers, options.shared))]
    found = compiled.kernels(options.file, on.capability)
    chosen = [each for each in found if options.kernel in each.name]
    if not chosen:
        names = ", ".join(each.name for each in found) or "none"
        raise ValueError("%s has no kernel %r; it has %s" % (options.file, options.kernel, names))
    return [
        (each.name, Launch(options.threads, options.registers or each.registers,
                           each.shared + options.shared))
        for each in chosen
    ]  # fmt: skip


def main(argv=None):
    """Exit code 0; 2 where what was asked for can't be done."""
    options = parser().parse_args(argv)
    on = CAPABILITIES.get(options.capability or compiled.gpu_capability() or "9.0")
    try:
        if on is None:
            raise ValueError("the GPU's capability is not known here; hint: --capability 9.0")
        for name, launch in launches(options, on):
            print("\n".join(told(launch, on, name)))
        if options.svg:
            picture(launch, on, "Occupancy of %s, capability %s" % (name, on.capability)).save(
                options.svg
            )
    except (ValueError, OSError) as error:
        print("dlsys.occupancy: %s" % error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
