"""What is said of a write whose object refers to other namespaces, or changes where a BMC's password may go.

The embedded API asks its authorizer, the webhook server asks for SubjectAccessReviews; the rules are the same. What an
object referred to before is not checked again, so that objects which are there already keep working; their writer is
warned.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from ironbell.api.bmc import MACHINE
from ironbell.contract.admission_lookups import ACCEPTED, AdmissionResponse
from ironbell.contract.crossing import KINDS, Access, Crossing, Object, crossings, split
from ironbell.provisioner.bmc_address import rights_to_write

Holds: TypeAlias = Callable[[Access], Awaitable[bool]]
"""Whether the writer holds a right."""
_MACHINES: Final = (MACHINE.group, MACHINE.plural)


@dataclass(frozen=True, slots=True)
class Write:
    """One write of an object."""

    group: str
    plural: str
    namespace: str
    user: str
    new: Object
    old: Object | None = None

    @property
    def changes_spec(self) -> bool:
        return self.old is None or self.old.get("spec") != self.new.get("spec")


def concerns(group: str, plural: str) -> bool:
    """Whether writes of a kind are looked at."""
    return (group, plural) in KINDS


async def reviewed(write: Write, holds: Holds) -> AdmissionResponse:
    """The verdict on a write.

    Raises:
        ApiError: a right cannot be looked up.
    """
    if (write.group, write.plural) == _MACHINES and (problem := await _addresses(write, holds)):
        return AdmissionResponse(forbidden=problem)
    if not write.changes_spec:
        return ACCEPTED
    new = crossings(write.group, write.plural, write.new, write.namespace)
    old = crossings(write.group, write.plural, write.old, write.namespace) if write.old is not None else []
    added, kept = split(new, old)
    for one in added:
        if not await _any(one.any_of, holds):
            return AdmissionResponse(forbidden=f"{one.cause(write.user)}. {one.remedy(write.namespace)}")
    return AdmissionResponse(warnings=[_warning(one, write.user) for one in kept if not await _any(one.any_of, holds)])


async def _addresses(write: Write, holds: Holds) -> str:
    for annotation, needed in rights_to_write(write.new, write.old):
        for rights in needed:
            if not await _any(rights, holds):
                secret = rights[-1]
                where = f"{secret.name} " if secret.name else ""
                return (
                    f'annotation {annotation} says where the password of this BMC goes, and user "{write.user}" may not'
                    f' {secret.verb} secrets {where}in namespace "{secret.namespace}". Leave the annotation as it is,'
                    " or ask somebody who may read the Secret to set it."
                )
    return ""


async def _any(rights: Iterable[Access], holds: Holds) -> bool:
    for one in rights:
        if await holds(one):
            return True
    return False


def _warning(crossing: Crossing, user: str) -> str:
    return f"{crossing.cause(user)}; it is accepted because it was set before. Setting it anew would be rejected."
