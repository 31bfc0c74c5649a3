"""Which server a machine gets: what rules one out, which is liked best, and whose turn it is. Pure.

Order: severity of what speaks against the server (`provisioner.health`), then sum of the weights of matching preferred
terms, then namespace and name. Machines that ask for the same wait in one queue, and the n-th of them gets the n-th
best server: so a hundred that begin at once do not all reach for the first. The queue is a hint; what decides is the
write on the Hardware.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/hardware.go (weights are added, as its API says).
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Final, TypeAlias

from ironbell.api.bmc.machine import Machine as BmcMachine
from ironbell.api.tinkerbell.hardware import Hardware, HardwareState
from ironbell.api.tinkerbell.inventory import HardwareRequirements
from ironbell.base.labels import LabelSelector
from ironbell.contract.clusters.capabilities import capabilities
from ironbell.contract.servers.claim import HELD, PHASE, POWER, claim_of
from ironbell.contract.servers.directory import ERROR
from ironbell.kube.decision import Key
from ironbell.kube.finalizers import is_deleting
from ironbell.provisioner.claims_from import UNSET, ClaimRules
from ironbell.provisioner.deferral import is_reserved_for, reservation_of
from ironbell.provisioner.health import SILENT_BMC, Problem, Severity, concerns
from ironbell.provisioner.health import severity as gravest
from ironbell.provisioner.permission import workflow_objection
from ironbell.provisioner.requirements import lacks

Bmcs: TypeAlias = Mapping[Key, BmcMachine]
"""bmc Machines by namespace and name; those whose BMC answers may be left out."""
SHOWN: Final = frozenset({PHASE, POWER})
"""Annotations of a Hardware that people read, and nothing else."""
NO_BMCS: Final[Bmcs] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Wish:
    """What a machine asks for."""

    required: tuple[LabelSelector, ...] = ()
    preferred: tuple[tuple[int, LabelSelector], ...] = ()
    requirements: HardwareRequirements | None = None
    failure_domain_label: str = ""
    failure_domain: str = ""
    """The value that the label must have; empty if any may be."""
    cluster: str = ""
    """The Cluster whose reserved servers the machine may claim (`contract.servers.wipe_due.cluster_identity`)."""
    namespace: str = ""
    """Where the machine is."""
    claims: ClaimRules = UNSET
    """Who may claim servers of other namespaces."""


ANY_SERVER: Final = Wish()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one server may be claimed, and how it ranks."""

    hardware: Hardware
    problems: tuple[Problem, ...] = ()
    """What rules it out."""
    score: int = 0
    severity: Severity = Severity.NONE
    is_reserved: bool = False
    """Whether only machines of this Cluster may claim it."""
    concerns: tuple[str, ...] = ()
    """Why servers without concerns come first."""

    @property
    def fits(self) -> bool:
        return not self.problems

    @property
    def rank(self) -> tuple[bool, int, bool, int, Key]:
        """Sorts verdicts, the best first."""
        return not self.fits, self.severity, not self.is_reserved, -self.score, self.hardware.key


def verdicts(wished: Wish, servers: Iterable[Hardware], bmcs: Bmcs = NO_BMCS) -> list[Verdict]:
    """The verdict on each server, the best first; servers that do not fit come last, by name."""
    return sorted((verdict(wished, hardware, bmcs) for hardware in servers), key=lambda found: found.rank)


def verdict(wished: Wish, hardware: Hardware, bmcs: Bmcs = NO_BMCS, *, ignores_reservation: bool = False) -> Verdict:
    """Everything that rules a server out, or ranks it; with `ignores_reservation` also one that is reserved for another
    Cluster may fit."""
    labels = hardware.metadata.labels
    raised = concerns(hardware, bmcs)
    blocked = [concern.problem for concern in raised if concern.problem is not None]
    problems = [*_not_free(hardware, wished.cluster, ignores_reservation), *unusable(hardware), *blocked]
    if forbidden := wished.claims.problem(hardware.metadata.namespace, wished.namespace):
        problems.append(Problem(forbidden))
    if wished.required and not any(selector.matches(labels) for selector in wished.required):
        problems.append(Problem("its labels match no required term of spec.hardwareAffinity"))
    if wished.failure_domain and labels.get(wished.failure_domain_label) != wished.failure_domain:
        has = labels.get(wished.failure_domain_label)
        where = f"in failure domain {has!r}" if has else f"without label {wished.failure_domain_label}"
        problems.append(Problem(f"it is {where}, not in {wished.failure_domain!r}"))
    if wished.requirements is not None:
        problems += lacks(wished.requirements, capabilities(hardware))
    score = sum(weight for weight, selector in wished.preferred if selector.matches(labels))
    lesser = [concern for concern in raised if concern.severity is not Severity.BLOCKED]
    messages = tuple(concern.message for concern in lesser)
    return Verdict(
        hardware, tuple(problems), score, gravest(lesser), is_reserved_for(hardware, wished.cluster), messages
    )


def is_claimable(hardware: Hardware) -> bool:
    """Return whether nobody has a server, and it may be claimed."""
    return not _not_free(hardware, "", False)


def became_claimable(old: Hardware | None, new: Hardware | None) -> bool:
    """Return whether a server can be claimed now, and more has changed than what people see of it.

    That it was claimable before concerns nobody who waits.
    """
    if new is None or not is_claimable(new):
        return False
    return old is None or _of_waiters(old) != _of_waiters(new)


def _of_waiters(hardware: Hardware) -> tuple[object, ...]:
    metadata = hardware.metadata
    annotations = {name: value for name, value in metadata.annotations.items() if name not in SHOWN}
    return metadata.labels, metadata.deletion_timestamp, annotations, hardware.spec, hardware.status


def _not_free(hardware: Hardware, cluster: str, ignores_reservation: bool) -> list[Problem]:
    found = []
    claim, due = claim_of(hardware), reservation_of(hardware)
    if due is not None:
        if not (ignores_reservation or is_reserved_for(hardware, cluster)):
            found.append(_WIPED_FIRST if due.ended else Problem(f"it is reserved for {due}", _RESERVED))
    elif claim is not None:
        found.append(Problem(f"it belongs to {claim}", _CLAIMED))
    if is_deleting(hardware):
        found.append(Problem("it is being deleted"))
    held = hardware.metadata.annotations.get(HELD)
    if held is not None:
        message = f"it is held ({HELD}: {held or 'no reason given'})"
        found.append(Problem(message, _HELD, message))
    return found


def unusable(hardware: Hardware) -> list[Problem]:
    """What makes it impossible to install this server at all, each naming its field."""
    found = []
    if hardware.status.state == HardwareState.ERROR:
        cause = hardware.metadata.annotations.get(ERROR) or "see its annotations"
        found.append(Problem(f"{_IN_ERROR}: {cause}", _IN_ERROR))
    first = hardware.spec.interfaces[0] if hardware.spec.interfaces else None
    if first is None:
        found.append(Problem("spec.interfaces is empty"))
    elif first.dhcp is None or first.dhcp.ip is None or not first.dhcp.ip.address:
        found.append(Problem("spec.interfaces[0].dhcp.ip.address is empty"))
    elif not _is_address(first.dhcp.ip.address):
        found.append(Problem(f"spec.interfaces[0].dhcp.ip.address {first.dhcp.ip.address!r} is no IP address"))
    if not hardware.spec.disks or not hardware.spec.disks[0].device:
        found.append(Problem("spec.disks[0].device is empty"))
    instance = hardware.spec.metadata.instance if hardware.spec.metadata is not None else None
    if instance is None or not instance.id:
        found.append(Problem("spec.metadata.instance.id is empty"))
    macs = [interface.dhcp.mac for interface in hardware.spec.interfaces[:1] if interface.dhcp is not None]
    if workflow_objection(hardware, macs) is not None:
        found.append(Problem("spec.interfaces[].netboot.allowWorkflow is false"))
    return found


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def pick(wished: Wish, servers: Iterable[Hardware], place: int, bmcs: Bmcs = NO_BMCS) -> Hardware | None:
    """The server for the machine at this place of the queue (0 is its head); None if there are too few.

    `servers` come by `own_severity`, then by namespace and name. Where no label is preferred, the search ends at the
    first server that serves: of a thousand that are free each machine would look at all.
    """
    if wished.preferred:
        fitting: Iterable[Verdict] = [found for found in verdicts(wished, servers, bmcs) if found.fits]
    else:
        fitting = (each for hardware in servers if (each := verdict(wished, hardware, bmcs)).fits)
    found = next(islice(fitting, place, None), None)
    return found.hardware if found is not None else None


def elsewhere(wished: Wish, servers: Iterable[Hardware], bmcs: Bmcs = NO_BMCS) -> list[str]:
    """Other failure domains that have a server for it; none for a wish that names none."""
    if not wished.failure_domain:
        return []
    anywhere = dataclasses.replace(wished, failure_domain="")
    found = {
        one.hardware.metadata.labels.get(wished.failure_domain_label, "")
        for one in verdicts(anywhere, servers, bmcs)
        if one.fits
    }
    return sorted(found - {"", wished.failure_domain})


def shortage(ranked: Sequence[Verdict], place: int, taken: int = 0) -> str:
    """Why there is no server, for a condition: counts, and the commonest reasons.

    `ranked` are the verdicts on the servers that nobody has claimed, `taken` is how many others have.
    """
    if not ranked:
        return f"all {taken} Hardware are claimed" if taken else "there is no Hardware that nobody has claimed"
    fitting, whole = sum(1 for one in ranked if one.fits), len(ranked) + taken
    if fitting:
        earlier = "1 machine that came earlier waits" if place == 1 else f"{place} machines that came earlier wait"
        return f"{fitting} of {whole} Hardware {'fits' if fitting == 1 else 'fit'}, and {earlier} for the same"
    counts: Counter[str] = Counter({_CLAIMED: taken} if taken else {})
    problems: dict[str, list[Problem]] = {}
    for one in ranked:
        kind = one.problems[0].kind or one.problems[0].message
        counts[kind] += 1
        problems.setdefault(kind, []).append(one.problems[0])
    found = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    reasons = [f"{count}: {_worded(kind, problems.get(kind, []))}" for kind, count in found[:_REASONS_SHOWN]]
    if rest := sum(count for _, count in found[_REASONS_SHOWN:]):
        reasons.append(f"{rest}: {'another reason' if rest == 1 else 'other reasons'}")
    return f"none of {whole} Hardware fits: " + "; ".join(reasons)


def _worded(kind: str, problems: Sequence[Problem]) -> str:
    """A kind of problem, with what is particular about it if that is the same for all."""
    shown = {problem.shown for problem in problems}
    if len(shown) != 1 or (kind == SILENT_BMC and len(problems) > 1):
        return kind
    return shown.pop() or kind


_REASONS_SHOWN: Final = 3
"""How many reasons are named."""
_CLAIMED: Final = "claimed by others"
_HELD: Final = f"it is held ({HELD})"
_IN_ERROR: Final = "its status.state is Error"
_RESERVED: Final = "reserved for other Clusters"
_WIPED_FIRST: Final = Problem("its disks are being wiped completely")
