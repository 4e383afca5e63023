"""What a contained process may see and reach, and the command that enforces it.

There are three levels, the strongest first:

- `bubblewrap`: a new root with the system's folders, the interpreter and the child's tree,
  read-only, and a scratch folder; no network; only its own processes; as root, another user.
- `namespaces`: the same with the kernel's namespaces alone, on the machine's root: the folders of
  the kit, of the home and of temporary files are covered.
- `process`: limits, and a process group that ends with its first process; as root, another user.
  The child sees the files that whoever runs the grader sees.

In all three, a filter of system calls (see syscalls.py) refuses what no limit covers, sockets among
it, and each child has its own key ring. A fourth level, `none`, has limits alone, for the kit's own
code.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grader.base.errors import UsageError
from grader.sandbox import syscalls
from grader.sandbox.gpu_memory import Meter
from grader.sandbox.scratch import in_memory, scratch_folder
from grader.sandbox.usage import Budget

LEVELS = ("bubblewrap", "namespaces", "process")
KIT = Path(__file__).resolve().parents[2]
#: Names a list of further folders, separated by colons, that student code may read.
EXTRA_PATHS = "DLSYS_SANDBOX_PATHS"

#: A note for instructors on results of the level "process"; no student needs to know.
UNCONTAINED = (
    "weak isolation: the submission's code could see every file and process of this machine "
    "that its user may see; hint: install bubblewrap, or allow ordinary users, or this "
    "container, to make namespaces"
)

_SHIM = Path(__file__).with_name("entry.py").read_text()
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/sys")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "nsswitch.conf")
# Ids that own nothing and that no system gives away; in an order of this process's own.
_USERS = itertools.cycle(random.SystemRandom().sample(range(60514, 61184), 670))
_PROBE = "import os, sys; os.path.isdir('/proc') and os.listdir('/proc'); open(sys.argv[1]).close()"
_WORKER = KIT / "grader" / "student" / "worker.py"  # what every child has to read
_ROOM = 1 << 20  # bytes of scratch for a probe
_AS_ROOT = (
    "; student code never runs as root, and the user that it became can't work here; hint: install "
    "bubblewrap, or lay the kit and its Python where every user may read them"
)
_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID")  # for giving up root, which gives these up too


class IsolationError(UsageError):
    """This machine does not offer the wanted level."""


@dataclass(frozen=True)
class View:
    """What a child may see beside the system's folders. Paths become absolute, since the child runs
    in another folder than this process.

    Attributes:
        level: one of LEVELS, or "none".
        readable: files and folders.
        writable: folders; they are given to the user that the child runs as.
        hidden: further folders that must not be seen.
        placed: (file or folder, where it is seen instead of what lies there), read-only. Only where
            the level has mounts, see `has_mounts`.
        budget: of processor time, shared with other children; or None.
        gpu: measures the GPU's memory while the child runs; or None.
        tools: whether it runs tools, as make and compilers, which need more system calls.
    """

    level: str = "none"
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    placed: tuple[tuple[Path, Path], ...] = ()
    budget: Budget | None = None
    gpu: Meter | None = None
    tools: bool = True

    def __post_init__(self) -> None:
        for name in ("readable", "writable", "hidden"):
            absolute = tuple(path.absolute() for path in getattr(self, name))
            object.__setattr__(self, name, absolute)
        placed = tuple((what.absolute(), where.absolute()) for what, where in self.placed)
        object.__setattr__(self, "placed", placed)


def has_mounts(level: str) -> bool:
    """Whether a level can show a child something at another place."""
    return level in ("bubblewrap", "namespaces")


def choose(wanted: str = "auto") -> str:
    """The wanted level, or the strongest that works here.

    Raises:
        IsolationError: the wanted level does not work here, or no level has that name.
    """
    if wanted == "auto":
        for level in LEVELS:
            if not why_not(level):
                return level
        raise IsolationError(f"no isolation works here: {why_not(LEVELS[-1])}")
    if wanted not in LEVELS:
        raise IsolationError(f"no isolation {wanted!r}; hint: one of auto, {', '.join(LEVELS)}")
    reason = why_not(wanted)
    if reason:
        raise IsolationError(f"isolation by {wanted} does not work here: {reason}")
    return wanted


@functools.cache
def why_not(level: str) -> str:
    """Why this machine does not offer a level; "" if it does. Tries the level once."""
    if level == "process" and os.getuid() != 0:
        return ""
    if level != "process" and sys.platform != "linux":
        return "it needs Linux"
    if level == "bubblewrap" and not shutil.which("bwrap"):
        return "bwrap is not installed; hint: apt-get install bubblewrap"
    with scratch_folder() as home:
        argv = [sys.executable, "-I", "-S", "-c", _PROBE, str(_WORKER)]
        try:
            command = confined(argv, home, home, lambda own: [], View(level, (_WORKER,)), _ROOM)
            done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=60)
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
            return str(error)
    lines = done.stderr.strip().splitlines() or ["it fails without a message"]
    if done.returncode == 0:
        return ""
    return lines[-1] + (_AS_ROOT if level == "process" else "")


def confined(
    argv: Sequence[str],
    cwd: Path,
    home: Path,
    limits: Callable[[bool], list[list[object]]],
    view: View,
    room: int | None = None,
) -> list[str]:
    """The command that runs `argv` in the folder `cwd`, with `home` as scratch.

    As root, gives these folders and what is writable to the child's user.

    Args:
        limits: gives the limits for shim.py, from whether the child's processes are counted apart.
        room: bytes of `home`, which then lies in memory if the level can do that.
    """
    if view.level == "none":
        return _shim(argv, cwd, limits(False), view=view)
    user = _give_away((cwd, *view.writable, home))
    if view.level == "process":
        return _shim(argv, cwd, limits(user is not None), user, view=view)
    own = limits(user is not None or _counts_namespaces_apart())
    if view.level == "bubblewrap":
        size = room if room and can_size_scratch() else None
        words = _bubblewrap((cwd, *view.readable), view.writable, user, view.hidden, (home, size))
        placed = [word for pair in view.placed for word in ("--ro-bind", *map(str, pair))]
        closed = ["--remount-ro", "/dev", "--remount-ro", "/"]  # scratch may lie in /dev/shm
        words += [*placed, *closed, "--chdir", "/"]
        return [*words, *_shim(argv, cwd, own, user, view=view)]
    plain, written = (*interpreter_paths(), cwd, *view.readable), list(view.writable)
    written += [home] if room is None else []
    shown = [(str(path), str(path), False) for path in plain]
    shown += [(str(path), str(path), True) for path in written]
    shown += [(str(what), str(place), False) for what, place in view.placed]
    scratch = None if room is None else (str(home), room)
    hidden = _hidden(view.hidden)
    return _shim(argv, cwd, own, user, hidden, shown, scratch, view=view)


def _counts_namespaces_apart() -> bool:
    """Whether the kernel counts the processes of each user namespace by themselves."""
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return release is not None and tuple(map(int, release.groups())) >= (5, 14)


def _shim(
    argv: Sequence[str],
    cwd: Path,
    limits: list[list[object]],
    uid: int | None = None,
    hide: list[str] | None = None,
    show: list[tuple[str, str, bool]] | None = None,
    scratch: tuple[str, int] | None = None,
    *,
    view: View,
) -> list[str]:
    """The command that starts the shim. At the level "process" the kernel may lack filters of
    system calls."""
    weak = view.level in ("none", "process")
    filtered = view.level != "none" and sys.platform == "linux"
    program = syscalls.program(has_gpu(), view.tools) if filtered else None
    settings = {
        "limits": limits, "cwd": str(cwd), "uid": uid, "hide": hide, "show": show,
        "scratch": scratch, "must": not weak, "adopt": weak,
        "filter": program.hex() if program else None,
    }  # fmt: skip
    return [sys.executable, "-I", "-S", "-c", _SHIM, json.dumps(settings), *argv]


def has_gpu() -> bool:
    """Whether this machine has NVIDIA's driver, which needs its own sockets."""
    return any(Path("/dev").glob("nvidia*"))


@functools.cache
def _knows(option: str) -> bool:
    """Whether this bubblewrap has an option."""
    words = ["bwrap", "--help"]
    return option in subprocess.run(words, capture_output=True, text=True, timeout=60).stdout


def can_size_scratch() -> bool:
    """Whether bubblewrap can limit the size of a folder in memory."""
    return _knows("--size ") and _knows("--perms ")


@functools.cache
def _no_user_namespaces() -> tuple[str, ...]:
    """The option of bubblewrap that forbids user namespaces inside, if it works here for an
    ordinary user. The filter of system calls forbids them too."""
    words = ("--unshare-user", "--disable-userns")
    if not _knows(words[1]):
        return ()
    tried = ["bwrap", *words, "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    done = subprocess.run(tried, capture_output=True, timeout=60, check=False)
    return words[1:] if done.returncode == 0 else ()


def _give_away(folders: Iterable[Path]) -> int | None:
    """As root, gives folders to a user that owns nothing else; returns that user."""
    if os.getuid() != 0:
        return None
    user = next(_USERS)
    for folder in folders:
        os.chown(folder, user, user)
        for root, names, files in os.walk(folder):
            for name in names + files:
                os.chown(os.path.join(root, name), user, user, follow_symlinks=False)
    return user


@functools.cache
def interpreter_paths() -> tuple[Path, ...]:
    """The places of Python, numpy and the build tools, as far as they are outside the system's
    folders."""
    found = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]]
    found += [Path(np.__file__).parents[1]]
    named = [os.environ.get(name, "").partition(" ")[0] for name in ("CXX", "NVCC")]
    for name in filter(None, (*named, "g++", "clang++", "c++", "nvcc", "make")):
        tool = shutil.which(name)
        found += [Path(tool).parent, Path(tool).resolve().parents[1]] if tool else []
    for variable in ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", EXTRA_PATHS):
        found += [Path(word) for word in os.environ.get(variable, "").split(":") if word]
    home = Path.home()
    return tuple(
        path
        for path in dict.fromkeys(path.absolute() for path in found)
        if path.is_dir() and path != home and path not in home.parents and path not in KIT.parents
    )


def outermost(folder: Path) -> Path:
    """The highest folder above this one, below the root, that is not the system's. Beside a
    submission's own folder lie those of others."""
    top = Path(*folder.parts[:2])
    system = (*_SYSTEM, "/etc", "/opt", "/dev", "/proc", "/var")
    return folder if str(top) in ("/", *system) else top


def _hidden(more: Iterable[Path]) -> list[str]:
    """Folders with what a submission must not see: the grader's, other submissions', the user's."""
    folders = [KIT, Path.home(), Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    folders.append(in_memory())  # another grader's trees may lie there
    folders += [Path(name) for name in ("/home", "/root", "/srv", "/mnt", "/media", "/run")]
    if "XDG_CACHE_HOME" in os.environ:
        folders.append(Path(os.environ["XDG_CACHE_HOME"]))
    folders += more
    system = {Path("/"), *map(Path, _SYSTEM)}
    found = sorted({path.resolve() for path in folders if path.is_dir()} - system)
    outermost: list[Path] = []
    for path in found:
        if not any(outer in path.parents for outer in outermost):
            outermost.append(path)
    return [str(path) for path in outermost]


def _bubblewrap(
    readable: Iterable[Path],
    writable: Iterable[Path],
    user: int | None,
    hidden: Iterable[Path],
    scratch: tuple[Path, int | None],
) -> list[str]:
    """The words of a command before the program: a root, still open, with what may be seen."""
    writable = (*writable, scratch[0])
    parents = {p for path in (*interpreter_paths(), *readable, *writable) for p in path.parents}
    words = ["bwrap", "--die-with-parent", *_separate(user), *_system()]
    for parent in sorted(parents):  # made by themselves they would be for root alone
        words += ["--dir", str(parent)]
    words += _bind("--ro-bind", interpreter_paths())
    covered = _covered(hidden)
    for folder in covered:
        words += ["--tmpfs", folder]
    for parent in sorted(parent for parent in parents if _lies_in(parent, covered)):
        words += ["--dir", str(parent)]
    # The interpreter may lie in a folder that is covered, as in a course's own.
    words += _bind("--ro-bind", (p for p in interpreter_paths() if _lies_in(p, covered)))
    words += _bind("--ro-bind", readable)
    for folder in covered:
        words += ["--remount-ro", folder]
    words += _bind("--bind", writable)
    if scratch[1] is not None:
        words += ["--perms", "1777", "--size", str(scratch[1]), "--tmpfs", str(scratch[0])]
    return words


def _separate(user: int | None) -> list[str]:
    """Options for no network and a process namespace; root keeps the rights to become `user`."""
    words = ["--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    words += ["--unshare-cgroup-try"]
    if user is None:
        return [*words, "--unshare-user", *_no_user_namespaces()]
    words += ["--cap-drop", "ALL"]
    for name in _CAPABILITIES:
        words += ["--cap-add", name]
    return words


def _system() -> list[str]:
    """Options for the system's folders, read-only, and the GPU's devices."""
    words = []
    for folder in _SYSTEM:
        if os.path.islink(folder):
            words += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            words += ["--ro-bind", folder, folder]
    words += ["--dir", "/etc"]
    for name in _ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += ["--proc", "/proc"]
    for name in filter(os.path.exists, ("/proc/keys", "/proc/key-users")):
        words += ["--ro-bind", "/dev/null", name]  # what keys this user has is nobody's business
    words += ["--dev", "/dev"]
    return words + _bind("--dev-bind", sorted(Path("/dev").glob("nvidia*")))


def _bind(how: str, paths: Iterable[Path]) -> list[str]:
    return [word for path in paths for word in (how, str(path), str(path))]


def _lies_in(path: Path, folders: Iterable[str]) -> bool:
    return any(Path(folder) in path.parents for folder in folders)


def _covered(hidden: Iterable[Path] = ()) -> list[str]:
    """The kit's and the hidden folders that lie in a visible folder. None of them contains
    another."""
    inside = (*map(Path, _SYSTEM), *interpreter_paths())
    own = [KIT / name for name in ("solution", "tests", "handout", ".git", "grader")]
    wanted = {path.absolute() for path in (*own, *hidden) if path.is_dir()}
    found: list[str] = []
    for path in sorted(wanted):
        if any(folder in path.parents for folder in inside) and not _lies_in(path, found):
            found.append(str(path))
    return found
