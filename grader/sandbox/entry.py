"""Becomes the program that is to be contained: sets limits, gives up rights, hides folders.

Its text is run as `python -I -S -c TEXT SETTINGS PROGRAM ARGUMENT...`, inside of bubblewrap where
there is one. Limits can't be set between fork and exec from Python without running Python code in
a forked, perhaps threaded, parent. SETTINGS is a JSON object:

- limits: [[name of the limit, soft, hard], ...]
- cwd: the folder to run in
- uid: the user and group to become, or null
- hide, show: folders to cover, and [path, where it is seen, whether it may be written] of what is
  visible below them all the same; null for no namespaces
- scratch: [folder, bytes] of memory to mount there, or null; only with namespaces
- filter: the filter of system calls that lasts from here on, in hex, or null; see syscalls.py
- must: whether a kernel without such filters is refused
- adopt: whether the program becomes the parent of its descendants' orphans, so that they stay below
  it where no first process of a namespace has them
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import platform
import re
import resource
import signal
import struct
import sys
from typing import Any

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_CHILD_SUBREAPER = 22, 2, 36
KEYCTL = {"x86_64": 250, "aarch64": 219}  # number of the system call
JOIN_SESSION_KEYRING = 1
MOST_FILES = 50_000  # in a scratch folder
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND = 1, 2, 4, 32, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
DEVICES = ("/proc", "/sys", "/dev")
# Options of a mount that may not be taken away.
FLAGS = {"nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024, "nodiratime": 2048}
FLAGS["relatime"] = 1 << 21
# An id that owns nothing; exec takes all rights in the namespace from it, unlike from 0.
NOBODY = 65534


def set_limits(limits: list[Any]) -> None:
    """Sets the limits, as far as the machine knows and allows them."""
    for name, soft, hard in limits:
        which = getattr(resource, "RLIMIT_" + name, None)
        if which is None:
            continue
        top = resource.getrlimit(which)[1]
        cap = [n if top == resource.RLIM_INFINITY else min(n, top) for n in (soft, hard)]
        try:
            resource.setrlimit(which, tuple(cap))
        except (ValueError, OSError):
            if sys.platform != "darwin":
                raise


def become(uid: int) -> None:
    """Changes from root to another user and group."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    end_with_parent()  # who becomes another user outlives its parent again


def end_with_parent() -> None:
    """Asks the kernel to kill this process when its parent dies; this also outlives exec."""
    if sys.platform == "linux":
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def call(function: str, *arguments: Any) -> None:
    """Calls a function of libc."""
    if getattr(LIBC, function)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{function}: {os.strerror(error)}")


def mount(
    source: str, target: str, kind: str | None, flags: int, data: bytes | None = None
) -> None:
    """mount(2)."""
    words = [os.fsencode(w) if w is not None else None for w in (source, target, kind)]
    call("mount", *words, ctypes.c_ulong(flags), data)


def enter_namespaces() -> None:
    """Enters namespaces without a network, without other processes' memory, and with own mounts."""
    uid, gid = os.getuid(), os.getgid()
    kinds = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
    if uid != 0:  # only in a namespace of users may an ordinary one do the rest
        call("unshare", CLONE_NEWUSER | kinds)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{NOBODY} {uid} 1"),
            ("gid_map", f"{NOBODY} {gid} 1"),
        ):
            with open("/proc/self/" + name, "w") as file:
                file.write(text)
    else:
        call("unshare", kinds)
    mount("none", "/", None, MS_REC | MS_PRIVATE)


def cover(folders: list[str], shown: list[Any], scratch: list[Any] | None) -> None:
    """Covers folders with empty ones that show only what is listed, at the place that it names.

    `shown` is a list of [path, place, whether it may be written]. All else except `scratch` becomes
    read-only.
    """
    held = [(place, os.open(path, os.O_PATH)) for path, place, _ in shown]
    for folder in folders:
        mount("none", folder, "tmpfs", MS_NOSUID | MS_NODEV, b"mode=755,size=1m")
    for path, fd in held:
        bind(path, fd)
        os.close(fd)
    writable = {place for _, place, may_write in shown if may_write}
    if scratch is not None:
        mount_scratch(*scratch)
        writable.add(scratch[0])
    for path, options in mounts():
        if path not in writable:
            flags = sum(FLAGS.get(word, 0) for word in options)
            try:
                mount("none", path, None, MS_REMOUNT | MS_BIND | MS_RDONLY | flags)
            except OSError as error:
                hidden = error.errno in (errno.EINVAL, errno.ENOENT)  # below another mount
                if not hidden and os.access(path, os.W_OK) and not path.startswith(DEVICES):
                    raise


def mount_scratch(folder: str, size: int) -> None:
    """Mounts a folder in memory that holds at most so many bytes, so that it fills no disk that
    others use."""
    os.makedirs(folder, exist_ok=True)
    options = f"mode=1777,size={size},nr_inodes={MOST_FILES}"
    mount("none", folder, "tmpfs", MS_NOSUID | MS_NODEV, options.encode())


def mounts() -> list[tuple[str, list[str]]]:
    """[(mount point, its options)] as they are now."""
    with open("/proc/self/mountinfo", errors="surrogateescape", newline="\n") as file:
        rows = [line.split(" ") for line in file]  # other white space may be part of a name
    plain = [re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), row[4]) for row in rows]
    return [(path, row[5].split(",")) for path, row in zip(plain, rows, strict=True)]


def bind(path: str, fd: int) -> None:
    """Binds what was kept open to its place."""
    real = f"/proc/self/fd/{fd}"
    if os.path.isdir(real):
        os.makedirs(path, exist_ok=True)
    elif not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    mount(real, path, None, MS_BIND | MS_REC)


def given() -> list[int]:
    """The descriptors that are open beside input and output."""
    return [fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2]


def let_go(fds: list[int]) -> None:
    """Closes these descriptors: while another process holds one, nobody can tell that the program
    closed its own."""
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)


def follow(pid: int, status: int) -> None:
    """Waits for the first process of the new namespace, and ends as its program ended."""
    os.waitpid(pid, 0)
    told = os.read(status, 16)
    code = int(told) if told else signal.SIGKILL
    if os.WIFSIGNALED(code):
        number = os.WTERMSIG(code)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(code))


def reap(pid: int, status: int) -> None:
    """Runs as the first process of its namespace: when it ends, all others are killed."""
    call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)  # nobody else writes to `status`
    while True:
        ended, code = os.wait()
        if ended == pid:
            os.write(status, b"%d" % code)
            os._exit(0)


def isolate(hide: list[str], show: list[Any], scratch: list[Any] | None) -> None:
    """Enters namespaces, and returns in their second process, since the first one ignores
    signals."""
    told, tell = os.pipe()
    theirs = [fd for fd in given() if fd not in (told, tell)]
    enter_namespaces()
    first = os.fork()
    if first:
        let_go([*theirs, tell])
        follow(first, told)
    end_with_parent()
    cover(hide, show, scratch)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
    for name in ("/proc/keys", "/proc/key-users"):  # this user's, also those of a login
        if os.path.exists(name):
            mount("/dev/null", name, None, MS_BIND)
    program = os.fork()
    if program:
        let_go(theirs)
        reap(program, tell)


def enter(folder: str) -> None:
    """Enters a folder by its name, since it may have been covered and shown again."""
    try:
        os.chdir(folder)
    except OSError as error:
        sys.exit(
            f"cannot enter {folder} as user {os.getuid()}: {error.strerror}; hint: move it "
            "to where every user has access"
        )


def leave_keys() -> None:
    """Starts a new, empty key ring: this process inherited that of whoever started the grader.
    Without support for keys there is nothing to read."""
    number = KEYCTL.get(platform.machine())
    if number is not None:
        LIBC.syscall(ctypes.c_long(number), ctypes.c_long(JOIN_SESSION_KEYRING), None)


def set_filter(text: str, must: bool) -> None:
    """Filters system calls from here on, also after exec."""
    program = bytes.fromhex(text)
    held = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HP", len(program) // 8, ctypes.addressof(held))
    try:
        call("prctl", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(head), 0, 0)
    except OSError:
        if must:
            raise


def main() -> None:
    """Does what the settings say, and becomes the program."""
    settings = json.loads(sys.argv[1])
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory runs out this process ends, and not the grader
    # Whoever starts the grader may ignore this, and so could nobody wait for a child.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    end_with_parent()
    if settings["hide"] is not None:
        isolate(settings["hide"], settings["show"], settings["scratch"])
    if settings["filter"] is not None:
        leave_keys()
    if settings["uid"] is not None:
        become(settings["uid"])
    enter(settings["cwd"])
    set_limits(settings["limits"])
    # Python ignores these at its start, and an ignored signal stays ignored over exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    if sys.platform == "linux":
        call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        call("prctl", PR_SET_CHILD_SUBREAPER, int(settings["adopt"]), 0, 0, 0)
    if settings["filter"] is not None:
        set_filter(settings["filter"], settings["must"])
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit(f"cannot run {sys.argv[2]}: {error.strerror}")


LIBC = ctypes.CDLL(None, use_errno=True)
main()
