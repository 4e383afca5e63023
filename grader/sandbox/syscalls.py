"""The filter of system calls for contained code, in the form that seccomp(2) reads.

It forbids what no limit covers: memory that belongs to no process (System V segments, files in
memory, socket buffers), namespaces and mounts, keys, and parts of the kernel that no submission
needs. This module makes the filter, and shim.py sets it; it lasts over exec.

No honest code needs these calls: numpy, OpenBLAS, OpenMP, compilers and make do not. CUDA and
compute-sanitizer ran under the filter on an H200: they need AF_UNIX sockets, but no network sockets
and no sendmsg.
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
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # where they stand in struct seccomp_data
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000

# Numbers on x86-64 and on arm64; since 5.1 (424 and above) they are the same.
_REFUSED = {
    # memory that is no process's
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
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
_CLONE, _CLONE3 = (56, 220), (435, 435)
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW*; clone3, whose flags a filter can't see, is not there
_AF_UNIX = 1


def program(sockets: bool, machine: str = "") -> bytes | None:
    """The filter for a machine, by default this one; None if its system call numbers are not known.

    `sockets` allows AF_UNIX sockets; no others are ever allowed. A forbidden call fails with EPERM,
    clone3 with ENOSYS, so that libc uses clone instead.
    """
    known = _MACHINES.get(machine or os.uname().machine)
    if known is None:
        return None
    name, column = known
    body = [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, name), _refuse(errno.EPERM)]
    body += [(_LOAD, 0, 0, _NUMBER)]
    body += [(_AT_LEAST, 0, 1, _X32), _refuse(errno.EPERM)] if column == 0 else []
    body += [(_EQUAL, 0, 1, _CLONE3[column]), _refuse(errno.ENOSYS)]
    for numbers in _REFUSED.values():
        body += [(_EQUAL, 0, 1, numbers[column]), _refuse(errno.EPERM)]
    for numbers in _SOCKETS.values():
        body += _sockets(numbers[column], sockets)
    body += _without_namespaces(_CLONE[column])
    return b"".join(struct.pack("=HBBI", *one) for one in [*body, (_RETURN, 0, 0, _ALLOW)])


def _refuse(error: int) -> Instruction:
    return (_RETURN, 0, 0, _REFUSE | error)


def _without_namespaces(number: int) -> list[Instruction]:
    return [
        (_EQUAL, 0, 4, number),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        _refuse(errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _sockets(number: int, some: bool) -> list[Instruction]:
    if not some:
        return [(_EQUAL, 0, 1, number), _refuse(errno.EPERM)]
    return [
        (_EQUAL, 0, 4, number),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 1, 0, _AF_UNIX),
        _refuse(errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
