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
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys

COMPUTE_CAPABILITY_MAJOR = 75  # names of cuDeviceGetAttribute
COMPUTE_CAPABILITY_MINOR = 76


class ConfigureError(Exception):
    """Something is missing; the message says what to install."""


def package_folder(name):
    """Folder of an installed Python package, or None."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(iter(spec.submodule_search_locations))


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
    raise ConfigureError("%s not found; hint: %s" % (patterns[0], hint))


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


def find_cxx():
    """The C++ compiler as a command line."""
    named = os.environ.get("CXX")
    if named:
        return named
    for name in ("g++", "clang++", "c++"):
        if shutil.which(name):
            return name
    if package_folder("ziglang"):
        return "%s -m ziglang c++" % shlex.quote(sys.executable)
    raise ConfigureError(
        "no C++ compiler; hint: python3 -m pip install ziglang, or your system's g++"
    )


def check_flags(cxx):
    """Options that the compiler of the checked build needs beyond -fsanitize=thread."""
    try:
        command = shlex.split(cxx) + ["--version"]
        version = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return ""
    # Else clang leaves out a read that a write to the same address follows, and ends the process
    # at an index past the end; and g++ leaves out the copies that it makes of calls.
    # Accesses of what is volatile call functions of their own (clang 11, GCC 11 and later).
    if b"clang" in version.stdout:
        flags = "-mllvm -tsan-instrument-read-before-write=1 -fno-sanitize=local-bounds"
        return flags + " -mllvm -tsan-distinguish-volatile=1"
    major = re.search(rb"\) (\d+)\.", version.stdout)
    knows_volatile = major is not None and int(major.group(1)) >= 11
    flags = "-fno-builtin-memcpy -fno-builtin-memset"
    # Fences, of which it warns since then, our functions know.
    return flags + (" --param=tsan-distinguish-volatile=1 -Wno-tsan" if knows_volatile else "")


def kernel_flags(cxx):
    """What kernels are compiled with, for a compiler and this CPU; results are the same bits.

    `make` asks at every build, so that kernels are built again for another CPU.
    """
    try:
        done = subprocess.run(
            [*shlex.split(cxx), "-dM", "-E", "-x", "c++", os.devnull],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return "-O3"
    macros = {line.split()[1] for line in done.stdout.splitlines() if line.count(" ") >= 1}
    flags = "-O3 -Wno-pass-failed"  # nvcc does not say which loops it could not unroll, either
    # GCC takes long for -O3, which has it sum up in memory (-floop-unroll-and-jam), and for -O2;
    # these passes of theirs are what makes kernels fast (the second: expf over several threads,
    # the third: tiles in shared memory).
    if "__GNUC__" in macros and "__clang__" not in macros:
        flags = "-O1 -ftree-vectorize -fexpensive-optimizations -ftree-vrp"
        flags += " -fvect-cost-model=dynamic -fpeel-loops"
    return flags + (" -mavx2" if "__x86_64__" in macros and has_avx2() else "")


def flags_of_kernels(cxx, checked=False):
    """All that CUDA sources are compiled with for the emulated GPU, as a list of words."""
    # nvcc, too, lets a pointer of another type see the same memory.
    language = ["-ffp-contract=off", "-fno-strict-aliasing", "-Wno-unknown-pragmas"]
    if not checked:
        # With lines for what is told of a kernel that fails; the code stays as it is.
        return [*kernel_flags(cxx).split(), "-g1", "-fopenmp-simd", *language]
    # The compiler calls a function at each access. These functions are the emulator's own, in
    # emulator/src/checked, so nothing is linked with -fsanitize.
    return [
        "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=thread", "-fsanitize=bounds,alignment",
        "-DEMULATOR_CHECKED", *language, *check_flags(cxx).split(),
    ]  # fmt: skip


def has_avx2():
    """Whether this CPU can compute 8 floats at once."""
    try:
        with open("/proc/cpuinfo") as file:
            return " avx2 " in file.read()
    except OSError:
        return False


def flag(prefix, path):
    """A compiler's option with a path in it, quoted for the shell and for make."""
    return shlex.quote(prefix + path).replace("$", "$$")


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


def emulated_variables():
    """Make variables of a build for the emulated GPU."""
    folder = package_folder("scipy_openblas32")
    if folder is None:
        raise ConfigureError(
            "the BLAS behind the emulated cuBLAS is missing; "
            "hint: python3 -m pip install scipy-openblas32"
        )
    lib = os.path.join(folder, "lib")
    return {
        "BLAS_INCLUDE": flag("-I", os.path.join(folder, "include")),
        "LIBS": "%s -lscipy_openblas %s -lpthread" % (flag("-L", lib), flag("-Wl,-rpath,", lib)),
    }


def configure(device):
    """All make variables, for device auto, cuda or emulated."""
    if device not in ("auto", "cuda", "emulated"):
        raise ConfigureError("DEVICE=%s; it is auto, cuda or emulated" % device)
    nvcc = find_nvcc() if device != "emulated" else None
    architecture = os.environ.get("CUDA_ARCH") or (gpu_architecture() if nvcc else None)
    if device == "cuda" and nvcc is None:
        raise ConfigureError(
            "DEVICE=cuda needs nvcc; hint: install the CUDA toolkit, or python3 -m pip install "
            "nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime "
            "nvidia-cuda-cccl nvidia-cublas"
        )
    variables = {"PYTHON": flag("", sys.executable), "CXX": find_cxx()}
    if nvcc and (architecture or device == "cuda"):
        variables["BACKEND"] = "cuda"
        variables.update(cuda_variables(nvcc, architecture or "all-major"))
    else:
        variables["BACKEND"] = "emulated"
        variables.update(emulated_variables())
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
    except ConfigureError as error:
        print("configure: %s" % error, file=sys.stderr)
        return 1
    lines = ["%s := %s\n" % item for item in sorted(variables.items())]
    write_if_changed(sys.argv[1], "".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
