"""Finds the compilers and libraries of this machine and writes them as make variables.

`make` runs it; by hand: python3 configure.py build/config.mk

Environment:
  DEVICE     auto (default), cuda or emulated
  CXX        the C++ compiler; default g++, clang++, c++, or the ziglang package
  NVCC       the CUDA compiler; default that of CUDA_HOME, the PATH, /usr/local/cuda,
             or the nvidia-cuda-nvcc package
  CUDA_ARCH  what nvcc builds for, as sm_90; default that of the first GPU
"""

import ctypes
import glob
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The emulated GPU: in this folder, as students have it, or beside it.
PLACES = [os.path.join(folder, "emulator") for folder in (HERE, os.path.dirname(HERE))]
EMULATOR = next((place for place in PLACES if os.path.isdir(place)), None)
if EMULATOR is None:
    sys.exit("configure: emulator/ is missing; hint: unpack the archive of the assignment again")
sys.path.insert(0, EMULATOR)

from toolchain import (  # noqa: E402 (after the path to it)
    ToolchainError,
    emulated_variables,
    find_cxx,
    flag,
    kernel_flags,
    package_folder,
)

COMPUTE_CAPABILITY_MAJOR = 75  # names of cuDeviceGetAttribute
COMPUTE_CAPABILITY_MINOR = 76


def gpu_architecture():
    """The architecture of the first NVIDIA GPU, as 'sm_90', or None if there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    calls = (
        lambda: driver.cuInit(0),
        lambda: driver.cuDeviceGet(ctypes.byref(device), 0),
        lambda: driver.cuDeviceGetAttribute(ctypes.byref(major), COMPUTE_CAPABILITY_MAJOR, device),
        lambda: driver.cuDeviceGetAttribute(ctypes.byref(minor), COMPUTE_CAPABILITY_MINOR, device),
    )
    if any(call() != 0 for call in calls):
        return None
    return "sm_%d%d" % (major.value, minor.value)


def cuda_roots():
    """Folders that may hold a CUDA toolkit, the best first."""
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    nvcc = shutil.which("nvcc")
    if nvcc:
        roots.append(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))))
    roots.append("/usr/local/cuda")
    wheels = package_folder("nvidia")
    if wheels:
        roots += sorted(glob.glob(os.path.join(wheels, "cu[0-9]*")), reverse=True)
    return [root for root in roots if root and os.path.isdir(root)]


def find_nvcc():
    """Path of nvcc, or None."""
    named = os.environ.get("NVCC")
    if named:
        return named
    candidates = [os.path.join(root, "bin", "nvcc") for root in cuda_roots()]
    candidates.append(shutil.which("nvcc"))
    return next((path for path in candidates if path and os.access(path, os.X_OK)), None)


def find_under(roots, patterns, hint):
    """The first file that matches, root by root."""
    for root in roots:
        for pattern in patterns:
            found = sorted(glob.glob(os.path.join(root, pattern)))
            if found:
                return found[0]
    raise ToolchainError("%s not found; hint: %s" % (patterns[0], hint))


def shared_library(roots, name):
    """Path of a CUDA library, with or without the unversioned link that wheels lack."""
    places = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
    patterns = ["%s/lib%s.so%s" % (place, name, end) for end in ("", ".*") for place in places]
    package = {"cudart": "nvidia-cuda-runtime", "cublas": "nvidia-cublas"}[name]
    return find_under(roots, patterns, "python3 -m pip install %s" % package)


def header_folder(roots, name):
    """The folder that holds a CUDA header."""
    places = ("include", "targets/x86_64-linux/include", "targets/sbsa-linux/include")
    package = "nvidia-cublas" if "cublas" in name else "nvidia-cuda-runtime"
    path = find_under(
        roots,
        ["%s/%s" % (place, name) for place in places],
        "python3 -m pip install %s" % package,
    )
    return os.path.dirname(path)


def cuda_variables(nvcc, architecture):
    """Make variables of a build for a real GPU."""
    roots = cuda_roots()
    headers = [header_folder(roots, name) for name in ("cuda_runtime.h", "cublas_v2.h")]
    libraries = [shared_library(roots, name) for name in ("cudart", "cublas")]
    rpaths = [flag("-Wl,-rpath,", os.path.dirname(library)) for library in libraries]
    return {
        "NVCC": flag("", nvcc),
        "CUDA_ARCH": architecture,
        "CUDA_INCLUDE": " ".join(flag("-I", folder) for folder in dict.fromkeys(headers)),
        "LIBS": " ".join([flag("", lib) for lib in libraries] + list(dict.fromkeys(rpaths))),
    }


def configure(device):
    """All make variables, for device auto, cuda or emulated."""
    if device not in ("auto", "cuda", "emulated"):
        raise ToolchainError("DEVICE=%s; it is auto, cuda or emulated" % device)
    nvcc = find_nvcc() if device != "emulated" else None
    architecture = os.environ.get("CUDA_ARCH") or (gpu_architecture() if nvcc else None)
    if device == "cuda" and nvcc is None:
        raise ToolchainError(
            "DEVICE=cuda needs nvcc; hint: install the CUDA toolkit, or python3 -m pip install "
            "nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime "
            "nvidia-cuda-cccl nvidia-cublas"
        )
    variables = {"PYTHON": flag("", sys.executable), "CXX": find_cxx()}
    if nvcc and (architecture or device == "cuda"):
        variables["BACKEND"] = "cuda"
        variables.update(cuda_variables(nvcc, architecture or "all-major"))
        blas = emulated_variables()
        variables.update(BLAS_INCLUDE=blas["BLAS_INCLUDE"], BLAS_LIBS=blas["LIBS"])
    else:
        variables["BACKEND"] = "emulated"
        variables.update(emulated_variables())
        variables["BLAS_LIBS"] = variables["LIBS"]
        # In the configuration, so that kernels are built again for another CPU.
        variables["KERNEL_FLAGS"] = kernel_flags(variables["CXX"])
    return variables


def write_if_changed(path, text):
    """Writes a file, but leaves its date alone if it says the same already."""
    if os.path.exists(path):
        with open(path) as file:
            if file.read() == text:
                return
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def main():
    """Writes the variables to the file that the command line names."""
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if "--help" in sys.argv or "-h" in sys.argv else 2
    try:
        variables = configure(os.environ.get("DEVICE") or "auto")
    except ToolchainError as error:
        print("configure: %s" % error, file=sys.stderr)
        return 1
    lines = ["%s := %s\n" % item for item in sorted(variables.items())]
    write_if_changed(sys.argv[1], "".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
