"""The filter of system calls for contained code, in the form that seccomp(2) reads.

It forbids what no limit covers: memory that belongs to no process (System V segments, files in
memory, socket buffers, pinned pages), ways to leave the tree of processes that is measured,
namespaces and mounts, keys, and parts of the kernel that no submission needs. This module makes the
filter, and entry.py sets it; it lasts over exec.

No honest code needs these calls: numpy, OpenBLAS, OpenMP, compilers and make do not. CUDA and
compute-sanitizer ran under the filter on an H200: they need AF_UNIX sockets, but no network sockets
and no sendmsg. compute-sanitizer adopts orphans, and counts as a tool. That pinned pages, lists in
the kernel, locks and SIGCHLD are refused is younger than that run: `make gpu-check` tries it.
"""

from __future__ import annotations

import errno
import os
import struct

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, value

# AUDIT_ARCH_* of linux/audit.h
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32 = 0x40000000  # a bit of the number of a call of the x32 interface, whose numbers differ
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE = 0, 4  # where they stand in struct seccomp_data
_ARGUMENTS = (16, 24, 32)  # where the lower halves of the first three arguments stand
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000

# Numbers on x86-64 and on arm64; since 5.1 (424 and above) they are the same.
_REFUSED = {
    # memory that is no process's
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    # What a pipe holds by these stays in memory though no process maps it and its file is gone; of
    # a page of 4 KiB the kernel keeps the whole large page.
    "vmsplice": (278, 75), "splice": (275, 76), "tee": (276, 77), "sendfile": (40, 71),
    # lists in the kernel without a bound that counts for a child
    "inotify_init": (253, 26), "inotify_init1": (294, 26), "io_setup": (206, 0),
    "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445),
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467), "open_by_handle_at": (304, 265),
    # keys
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    # doors into the kernel
    "bpf": (321, 280), "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "fanotify_init": (300, 262), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    # By these a file is sent on: what is under way is open in no process, so that nobody counts it.
    "sendmsg": (46, 211), "sendmmsg": (307, 269),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "swapon": (167, 224), "swapoff": (168, 225),
}  # fmt: skip
_SOCKETS = {"socket": (41, 198), "socketpair": (53, 199)}
_AF_UNIX = 1
_CLONE, _CLONE3 = (56, 220), (435, 435)  # clone3, whose flags a filter can't see, is not there
_NEW_NAMESPACES, _PARENT = 0x7E020000, 0x8000  # CLONE_NEW*, and a child of one's own parent
_THREAD, _FILES = 0x10000, 0x400
_CLOSE_RANGE, _UNSHARE = (436, 436), 2
_SIGACTION, _SIGCHLD = (13, 134), 17
_PRCTL, _SET_DUMPABLE, _SET_CHILD_SUBREAPER = (157, 167), 4, 36
_FCNTL, _NOTIFY, _SETPIPE_SZ = (72, 25), 1026, 1031
# Locks on files that all children see would carry messages between them, and those of ranges are
# memory without a bound. A session of one's own gets a share of the processor of its own.
_OF_TOOLS = {"flock": (73, 32), "setsid": (112, 157)}
_LOCKS = (6, 7, 37, 38)


def program(sockets: bool, tools: bool = False, *, machine: str = "") -> bytes | None:
    """The filter for a machine, by default this one; None if its system call numbers are not known.

    A forbidden call fails with EPERM, clone3 with ENOSYS, so that libc uses clone instead.

    Args:
        sockets: allows AF_UNIX sockets; no others are ever allowed.
        tools: allows what make, compilers and compute-sanitizer need, and student code does not:
            locks on files, what to do when a child ends, sessions.
    """
    known = _MACHINES.get(machine or os.uname().machine)
    if known is None:
        return None
    name, column = known
    body = [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, name), _refuse(errno.EPERM)]
    body += [(_LOAD, 0, 0, _NUMBER)]
    body += [(_AT_LEAST, 0, 1, _X32), _refuse(errno.EPERM)] if column == 0 else []
    body += [(_EQUAL, 0, 1, _CLONE3[column]), _refuse(errno.ENOSYS)]
    refused = [*_REFUSED.values(), *([] if tools else _OF_TOOLS.values())]
    refused += [] if sockets else _SOCKETS.values()
    for numbers in refused:
        body += [(_EQUAL, 0, 1, numbers[column]), _refuse(errno.EPERM)]
    for numbers, rule in (
        *((socket, _UNIX_ALONE) for socket in _SOCKETS.values()),
        (_CLONE, _IN_THE_TREE),
        (_CLOSE_RANGE, _test(2, _ANY_BIT, _UNSHARE)),
        (_SIGACTION, _ALLOWED if tools else _NO_NEW_ACTION),
        (_PRCTL, _NOT_UNDONE),
        (_FCNTL, _test(1, _EQUAL, _NOTIFY, _SETPIPE_SZ, *([] if tools else _LOCKS))),
    ):
        body += [(_EQUAL, 0, len(rule), numbers[column]), *rule]
    return b"".join(struct.pack("=HBBI", *one) for one in [*body, (_RETURN, 0, 0, _ALLOW)])


def _refuse(error: int) -> Instruction:
    return (_RETURN, 0, 0, _REFUSE | error)


def _load(argument: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS[argument])


def _test(argument: int, test: int, *values: int) -> list[Instruction]:
    """Refuses a call one of whose arguments passes the test with any of the values."""
    body = [_load(argument)]
    for value in values:
        body += [(test, 0, 1, value), _refuse(errno.EPERM)]
    return [*body, (_RETURN, 0, 0, _ALLOW)]


_ALLOWED = [(_RETURN, 0, 0, _ALLOW)]
_UNIX_ALONE = [
    _load(0), (_EQUAL, 1, 0, _AF_UNIX), _refuse(errno.EPERM), (_RETURN, 0, 0, _ALLOW),
]  # fmt: skip
# Every process is a child of the one that made it, and all threads of a process have its files.
_IN_THE_TREE = [
    _load(0),
    (_ANY_BIT, 2, 0, _NEW_NAMESPACES | _PARENT),
    (_ANY_BIT, 0, 2, _THREAD),
    (_ANY_BIT, 1, 0, _FILES),
    _refuse(errno.EPERM),
    (_RETURN, 0, 0, _ALLOW),
]
# Of children that a process ignores, the kernel forgets what they used. To ask is allowed: the
# second argument is null then, in both halves.
_NO_NEW_ACTION = [
    _load(0),
    (_EQUAL, 0, 4, _SIGCHLD),
    _load(1),
    (_EQUAL, 0, 3, 0),
    (_LOAD, 0, 0, _ARGUMENTS[1] + 4),
    (_EQUAL, 0, 1, 0),
    (_RETURN, 0, 0, _ALLOW),
    _refuse(errno.EPERM),
]
# To be unreadable, and to lose what the parent adopts. To adopt is allowed: the tree stays one.
_NOT_UNDONE = [
    _load(0),
    (_EQUAL, 1, 0, _SET_DUMPABLE),
    (_EQUAL, 0, 3, _SET_CHILD_SUBREAPER),
    _load(1),
    (_EQUAL, 0, 1, 0),
    _refuse(errno.EPERM),
    (_RETURN, 0, 0, _ALLOW),
]
