"""Properties of a check that the code which runs it must know. They are declared beside the
check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

AnyCheck = TypeVar("AnyCheck", bound=Callable[..., None])


@dataclass(frozen=True)
class Traits:
    """Properties of a check.

    Attributes:
        device: whether it needs the built library.
        kernels: whether it calls nothing but kernels, so that it can run again, and under a tool.
        explained: whether accesses of kernels may explain its failure.
        timed: backends on which it measures time, so that nothing may run beside it.
    """

    device: bool = True
    kernels: bool = False
    explained: bool = False
    timed: frozenset[str] = frozenset()


def check(
    *, device: bool = True, explained: bool = False, timed: Iterable[str] = ()
) -> Callable[[AnyCheck], AnyCheck]:
    """Decorator that declares a function to be a check with these traits; see `Traits`."""

    def declare(function: AnyCheck) -> AnyCheck:
        function.traits = Traits(  # type: ignore[attr-defined]
            device=device, explained=explained, timed=frozenset(timed)
        )
        return function

    return declare


def traits_of(check: Callable[..., None] | None) -> Traits:
    """The traits of a check; the defaults for the build and for a plain function."""
    found = getattr(check, "traits", None)
    return found if isinstance(found, Traits) else Traits()


def declared(names: Mapping[str, Any]) -> dict[str, Callable[..., None]]:
    """Name -> check, of the checks that a module declares; `names` holds its globals."""
    return {
        name: each
        for name, each in names.items()
        if isinstance(getattr(each, "traits", None), Traits)
        and each.__module__ == names["__name__"]
    }
