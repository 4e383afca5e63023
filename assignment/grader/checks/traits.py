"""What is so of a check, whatever it checks: said where it is written, asked by what runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

AnyCheck = TypeVar("AnyCheck", bound=Callable[..., None])


@dataclass(frozen=True)
class Traits:
    """Of a check.

    Attributes:
        device: whether it needs what was built.
        kernels: whether it calls kernels alone, so that it can be run again, and watched.
        explained: whether what kernels access may explain its failure.
        timed: the backends on which it looks at the clock, so that nothing may run beside it.
    """

    device: bool = True
    kernels: bool = False
    explained: bool = False
    timed: frozenset[str] = frozenset()


def check(
    *, device: bool = True, explained: bool = False, timed: Iterable[str] = ()
) -> Callable[[AnyCheck], AnyCheck]:
    """Declares a function to be a check; see `Traits`."""

    def declare(function: AnyCheck) -> AnyCheck:
        function.traits = Traits(  # type: ignore[attr-defined]
            device=device, explained=explained, timed=frozenset(timed)
        )
        return function

    return declare


def traits_of(check: Callable[..., None] | None) -> Traits:
    """What is so of a check; of the build, and of a plain function, what is so of most."""
    found = getattr(check, "traits", None)
    return found if isinstance(found, Traits) else Traits()


def declared(names: Mapping[str, Any]) -> dict[str, Callable[..., None]]:
    """The checks that a module declares, by their names; `names` are its globals."""
    return {
        name: each
        for name, each in names.items()
        if isinstance(getattr(each, "traits", None), Traits)
        and each.__module__ == names["__name__"]
    }
