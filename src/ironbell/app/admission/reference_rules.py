"""Rules for writes whose object refers to other namespaces, or changes the address that gets a BMC's password.

The embedded API queries its authorizer, the webhook server sends SubjectAccessReviews; the rules are the same. Existing
references of an object are not checked again, so that existing objects keep working; their writer gets a warning.
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
"""Returns whether the writer holds a right."""
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
    """Return whether writes of a kind are reviewed."""
    return (group, plural) in KINDS


async def reviewed(write: Write, holds: Holds) -> AdmissionResponse:
    """Review a write.

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
    for crossing in added:
        if not await _any(crossing.any_of, holds):
            return AdmissionResponse(forbidden=f"{crossing.cause(write.user)}. {crossing.remedy(write.namespace)}")
    return AdmissionResponse(
        warnings=[_warning(crossing, write.user) for crossing in kept if not await _any(crossing.any_of, holds)]
    )


async def _addresses(write: Write, holds: Holds) -> str:
    for annotation, needed in rights_to_write(write.new, write.old):
        for rights in needed:
            if not await _any(rights, holds):
                secret = rights[-1]
                where = f"{secret.name} " if secret.name else ""
                return (
                    f"annotation {annotation} determines which address gets the password of this BMC, and user "
                    f'"{write.user}" may not {secret.verb} secrets {where}in namespace "{secret.namespace}". Leave the '
                    "annotation unchanged, or have a user who may read the Secret set it."
                )
    return ""


async def _any(rights: Iterable[Access], holds: Holds) -> bool:
    for right in rights:
        if await holds(right):
            return True
    return False


def _warning(crossing: Crossing, user: str) -> str:
    return f"{crossing.cause(user)}; it is accepted because it was set before. Setting it again would be rejected."
