"""How a child says which kernel the emulated GPU's watchdog stopped, and is told of it again.

What hung so far is remembered in grader.grading.hangs; here are the words that pass between it and
a child, in an error's message and in the environment.

A kernel that did not end once gets a tenth of the time in the children of later checks. The child
says which kernels those are. A submission that lies has its own kernels stopped earlier, and gains
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from grader.student.remote import StudentError

#: Seconds of processor time that a block may take in the checked build: what is looked at there is
#: small, and takes a fraction of one.
CHECKED = {"EMULATOR_LAUNCH_SECONDS": "3"}
#: Names of kernels that were stopped before, with commas.
_NAMES = "EMULATOR_ENDLESS"
_SAID = re.compile(
    r"emulated GPU: kernel (\w{1,100})(\b.{0,200}), block \(.*\), thread \(.*\): it did not end"
)


def endless_kernel(error: Exception | None) -> str:
    """The kernel that was stopped because it did not end, thread by thread either; "" if none
    was."""
    said = isinstance(error, StudentError) and _SAID.search(error.message)
    return said.group(1) + said.group(2) if said else ""


def environment(kernels: Iterable[str]) -> dict[str, str]:
    """The variables that tell a child about these kernels."""
    names = ",".join(sorted(name for name in kernels if "," not in name))
    return {_NAMES: names} if names else {}


def known(env: Mapping[str, str]) -> dict[str, str]:
    """Those variables in an environment."""
    return {_NAMES: env[_NAMES]} if _NAMES in env else {}
