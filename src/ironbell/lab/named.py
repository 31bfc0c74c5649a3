"""The machine of a name, in a lab's description and in its state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar


class Named(Protocol):
    """A machine, as far as it is looked up."""

    @property
    def name(self) -> str: ...


MachineT = TypeVar("MachineT", bound=Named)


def machine_named(machines: Sequence[MachineT], name: str, error: Callable[[str], Exception]) -> MachineT:
    """The machine of that name.

    Raises:
        Exception: what `error` makes of the message; the lab has no such machine.
    """
    for machine in machines:
        if machine.name == name:
            return machine
    known = ", ".join(machine.name for machine in machines)
    raise error(f"the lab has no machine {name!r}; it has {known}")
