"""What compiled kernels take: registers and shared memory, as cuobjdump tells them."""

import ctypes
import dataclasses
import os
import re
import shutil
import subprocess
import tempfile

from dlsys import ndarray
from dlsys._base import _LIB

_NUMBERS = re.compile(r"REG:(\d+).*?SHARED:(\d+)")
_MAJOR, _MINOR = 75, 76  # names of cudaDeviceGetAttribute
#: From this architecture on the compiler counts the shared memory that the system takes of a block.
_COUNTS_RESERVED, _RESERVED = 90, 1024


class ToolError(ValueError):
    """A tool of CUDA is missing or refuses; the message says what to do."""


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A kernel.

    Attributes:
        name: as a person reads it.
        registers: of a thread.
        shared: bytes of a block that the source declares.
    """

    name: str
    registers: int
    shared: int


def gpu_capability():
    """That of the first GPU, as "9.0"; None without one."""
    if not hasattr(_LIB, "cudaDeviceGetAttribute") or ndarray.is_emulated():
        return None
    found = []
    for number in (_MAJOR, _MINOR):
        value = ctypes.c_int()
        if _LIB.cudaDeviceGetAttribute(ctypes.byref(value), number, 0) != 0:
            return None
        found.append(value.value)
    return "%d.%d" % tuple(found)


def kernels(path, capability):
    """The kernels of a library, an object file, a cubin, or of a .cu file, which nvcc compiles.

    Raises:
        ToolError: cuobjdump or nvcc is missing, or refuses the file.
    """
    if not path.endswith(".cu"):
        return read(_said("cuobjdump", "--dump-resource-usage", path), capability)
    sources = os.path.dirname(os.path.abspath(path))
    with tempfile.TemporaryDirectory() as folder:
        cubin = os.path.join(folder, "kernels.cubin")
        _said("nvcc", "-std=c++17", "-O3", "-I" + sources, "-arch=sm_" + _number(capability),
              "-cubin", path, "-o", cubin)  # fmt: skip
        return read(_said("cuobjdump", "--dump-resource-usage", cubin), capability)


def read(text, capability):
    """The kernels in what `cuobjdump --dump-resource-usage` printed, those for a capability.

    Of another one only where there is none for this.
    """
    found, architecture, name = {}, "", None
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("arch ="):
            architecture = line.rpartition("sm_")[2].rstrip("af")
        elif line.startswith("Function "):
            name = line[len("Function ") :].rstrip(":")
        elif name and _NUMBERS.search(line):
            numbers = [int(each) for each in _NUMBERS.search(line).groups()]
            found.setdefault(architecture, {})[name] = numbers
            name = None
    wanted = _number(capability)
    chosen = wanted if wanted in found else next(iter(found), "")
    own = found.get(chosen, {})
    reserved = _RESERVED if int(chosen or wanted) >= _COUNTS_RESERVED else 0
    names = _readable(list(own))
    return [
        Compiled(words, registers, max(0, shared - reserved))
        for words, (registers, shared) in zip(names, own.values())
    ]


def _number(capability):
    return capability.replace(".", "")


def _readable(names):
    """Names without mangling and parameters, where c++filt is installed."""
    if names and shutil.which("c++filt"):
        names = _said("c++filt", *names).splitlines()
    short = [re.sub(r"^void |\(anonymous namespace\)::|<unnamed>::", "", name) for name in names]
    return [re.sub(r"\((?:[^()]|\([^()]*\))*\)$", "", name) for name in short]


def _said(tool, *arguments):
    path = shutil.which(tool)
    if path is None:
        raise ToolError("%s is not installed; hint: give --registers and --shared" % tool)
    done = subprocess.run([path, *arguments], capture_output=True, text=True)
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()[:5]
        raise ToolError("%s: %s" % (tool, "\n".join(words)))
    return done.stdout
