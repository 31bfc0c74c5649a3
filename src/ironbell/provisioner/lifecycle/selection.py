"""The selection of a server for a machine: problems that exclude a server, and the ranking of the others. Pure.

Order: severity of the concerns about the server (`provisioner.health`), then the sum of the weights of matching
preferred terms, then namespace and name. Machines with the same requirements wait in one queue, and the n-th of them
gets the n-th best server, so that a hundred machines do not all try to claim the first one. The queue is a hint; the
write on the Hardware decides.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/hardware.go (weights are added, as its API says).
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from itertools import islice
from types import MappingProxyType
from typing import Final, TypeAlias

from ironbell.api.bmc.machine import Machine as BmcMachine
from ironbell.api.tinkerbell.hardware import Hardware, HardwareState
from ironbell.api.tinkerbell.inventory import HardwareRequirements
from ironbell.base.labels import LabelSelector
from ironbell.base.quantities import amount, canonical
from ironbell.contract.clusters.capabilities import Capabilities, capabilities
from ironbell.contract.servers.claim import HELD, PHASE, POWER, claim_of
from ironbell.contract.servers.directory import ERROR
from ironbell.kube.decision import Key
from ironbell.kube.finalizers import is_deleting
from ironbell.provisioner.claims_from import UNSET, ClaimRules
from ironbell.provisioner.deferral import is_reserved_for, reservation_of
from ironbell.provisioner.health import Obstacle, Problem, Severity, concerns
from ironbell.provisioner.health import severity as gravest
from ironbell.provisioner.permission import workflow_objection

Bmcs: TypeAlias = Mapping[Key, BmcMachine]
"""bmc Machines by namespace and name; BMCs that respond may be left out."""
SHOWN: Final = frozenset({PHASE, POWER})
"""Annotations of a Hardware that are only displayed."""
NO_BMCS: Final[Bmcs] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Wish:
    """The requirements of a machine."""

    required: tuple[LabelSelector, ...] = ()
    preferred: tuple[tuple[int, LabelSelector], ...] = ()
    requirements: HardwareRequirements | None = None
    failure_domain_label: str = ""
    failure_domain: str = ""
    """The required value of the label; empty for any."""
    cluster: str = ""
    """The Cluster whose reserved servers the machine may claim (`contract.servers.wipe_due.cluster_identity`)."""
    namespace: str = ""
    """The namespace of the machine."""
    claims: ClaimRules = UNSET
    """Rules for claims of servers in other namespaces."""


ANY_SERVER: Final = Wish()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server, with its problems and its rank."""

    hardware: Hardware
    problems: tuple[Problem, ...] = ()
    """Problems that exclude it."""
    score: int = 0
    severity: Severity = Severity.NONE
    is_reserved: bool = False
    """Whether only machines of this Cluster may claim it."""
    concerns: tuple[str, ...] = ()
    """Reasons to prefer other servers."""

    @property
    def fits(self) -> bool:
        return not self.problems

    @property
    def rank(self) -> tuple[bool, int, bool, int, Key]:
        """Sort key of candidates, the best first."""
        return not self.fits, self.severity, not self.is_reserved, -self.score, self.hardware.key


def verdicts(wished: Wish, servers: Iterable[Hardware], bmcs: Bmcs = NO_BMCS) -> list[Candidate]:
    """The candidates, the best first; servers that do not fit come last, by name."""
    return sorted((verdict(wished, hardware, bmcs) for hardware in servers), key=lambda candidate: candidate.rank)


def verdict(wished: Wish, hardware: Hardware, bmcs: Bmcs = NO_BMCS, *, ignores_reservation: bool = False) -> Candidate:
    """Evaluate a server; with `ignores_reservation`, a server that is reserved for another Cluster may fit."""
    labels = hardware.metadata.labels
    raised = concerns(hardware, bmcs)
    blocked = [concern.problem for concern in raised if concern.problem is not None]
    problems = [*_not_free(hardware, wished.cluster, ignores_reservation), *unusable(hardware), *blocked]
    if forbidden := wished.claims.problem(hardware.metadata.namespace, wished.namespace):
        problems.append(Problem(forbidden, obstacle=Obstacle.CLAIMS_FROM))
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
    return Candidate(
        hardware, tuple(problems), score, gravest(lesser), is_reserved_for(hardware, wished.cluster), messages
    )


def is_claimable(hardware: Hardware) -> bool:
    """Return whether a server is unclaimed and nothing prevents a claim."""
    return not _not_free(hardware, "", False)


def became_claimable(old: Hardware | None, new: Hardware | None) -> bool:
    """Return whether a server is claimable, and more has changed than displayed values.

    It may have been claimable before: queued owners search again if it changed.
    """
    if new is None or not is_claimable(new):
        return False
    return old is None or _of_waiters(old) != _of_waiters(new)


def _of_waiters(hardware: Hardware) -> tuple[object, ...]:
    metadata = hardware.metadata
    annotations = {name: value for name, value in metadata.annotations.items() if name not in SHOWN}
    return metadata.labels, metadata.deletion_timestamp, annotations, hardware.spec, hardware.status


def _not_free(hardware: Hardware, cluster: str, ignores_reservation: bool) -> list[Problem]:
    problems = []
    claim, due = claim_of(hardware), reservation_of(hardware)
    if due is not None:
        if not (ignores_reservation or is_reserved_for(hardware, cluster)):
            problems.append(_WIPED_FIRST if due.ended else Problem(f"it is reserved for {due}", _RESERVED))
    elif claim is not None:
        problems.append(Problem(f"it belongs to {claim}", _CLAIMED))
    if is_deleting(hardware):
        problems.append(Problem("it is being deleted"))
    held = hardware.metadata.annotations.get(HELD)
    if held is not None:
        message = f"it is held ({HELD}: {held or 'no reason given'})"
        problems.append(Problem(message, _HELD, message, Obstacle.HELD))
    return problems


def unusable(hardware: Hardware) -> list[Problem]:
    """Problems that prevent any installation of this server; each names its field."""
    problems = []
    if hardware.status.state == HardwareState.ERROR:
        cause = hardware.metadata.annotations.get(ERROR) or "see its annotations"
        problems.append(Problem(f"{_IN_ERROR}: {cause}", _IN_ERROR))
    first = hardware.spec.interfaces[0] if hardware.spec.interfaces else None
    if first is None:
        problems.append(Problem("spec.interfaces is empty"))
    elif first.dhcp is None or first.dhcp.ip is None or not first.dhcp.ip.address:
        problems.append(Problem("spec.interfaces[0].dhcp.ip.address is empty", obstacle=Obstacle.NO_ADDRESS))
    elif not _is_address(first.dhcp.ip.address):
        problems.append(
            Problem(f"spec.interfaces[0].dhcp.ip.address {first.dhcp.ip.address!r} is not a valid IP address")
        )
    if not hardware.spec.disks or not hardware.spec.disks[0].device:
        problems.append(Problem("spec.disks[0].device is empty"))
    instance = hardware.spec.metadata.instance if hardware.spec.metadata is not None else None
    if instance is None or not instance.id:
        problems.append(Problem("spec.metadata.instance.id is empty"))
    macs = [interface.dhcp.mac for interface in hardware.spec.interfaces[:1] if interface.dhcp is not None]
    if workflow_objection(hardware, macs) is not None:
        problems.append(Problem("spec.interfaces[].netboot.allowWorkflow is false"))
    return problems


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def pick(wished: Wish, servers: Iterable[Hardware], place: int, bmcs: Bmcs = NO_BMCS) -> Hardware | None:
    """The server for the machine at this place of the queue (0 is its head); None if there are too few.

    `servers` are sorted by `own_severity`, then by namespace and name. Without preferred labels, the search ends at the
    first server that fits; otherwise each machine would evaluate all of a thousand free servers.
    """
    if wished.preferred:
        fitting: Iterable[Candidate] = [candidate for candidate in verdicts(wished, servers, bmcs) if candidate.fits]
    else:
        fitting = (candidate for hardware in servers if (candidate := verdict(wished, hardware, bmcs)).fits)
    chosen = next(islice(fitting, place, None), None)
    return chosen.hardware if chosen is not None else None


def elsewhere(wished: Wish, servers: Iterable[Hardware], bmcs: Bmcs = NO_BMCS) -> list[str]:
    """Other failure domains with a server that fits; empty for a wish without a failure domain."""
    if not wished.failure_domain:
        return []
    anywhere = dataclasses.replace(wished, failure_domain="")
    domains = {
        candidate.hardware.metadata.labels.get(wished.failure_domain_label, "")
        for candidate in verdicts(anywhere, servers, bmcs)
        if candidate.fits
    }
    return sorted(domains - {"", wished.failure_domain})


def shortage(ranked: Sequence[Candidate], place: int, claimed: int = 0) -> str:
    """The reason for a shortage, for a condition: the number of servers per problem, most frequent first.

    `ranked` are the unclaimed servers, `claimed` is the number of the others.
    """
    if not ranked:
        return f"all {claimed} Hardware are claimed" if claimed else "there is no Hardware"
    fitting, whole = sum(1 for candidate in ranked if candidate.fits), len(ranked) + claimed
    if fitting:
        earlier = "1 earlier machine waits" if place == 1 else f"{place} earlier machines wait"
        return f"{fitting} of {whole} Hardware {'fits' if fitting == 1 else 'fit'}, and {earlier} for the same servers"
    kinds = _first_problems(ranked, claimed)
    reasons = [f"{len(problems)}: {_worded(kind, problems)}" for kind, problems in kinds[:_REASONS_SHOWN]]
    if rest := sum(len(problems) for _, problems in kinds[_REASONS_SHOWN:]):
        reasons.append(f"{rest}: {'another reason' if rest == 1 else 'other reasons'}")
    return f"none of {whole} Hardware fits: " + "; ".join(reasons)


def obstacles(ranked: Sequence[Candidate]) -> list[Obstacle | None]:
    """The obstacles behind the reasons of `shortage`, in the same order; empty if a server fits."""
    if any(candidate.fits for candidate in ranked):
        return []
    return [problems[0].obstacle for _, problems in _first_problems(ranked)[:_REASONS_SHOWN]]


def _first_problems(ranked: Sequence[Candidate], claimed: int = 0) -> list[tuple[str, list[Problem]]]:
    """The first problem of each server by kind, the most frequent kind first."""
    kinds = {_CLAIMED: [Problem(_CLAIMED)] * claimed} if claimed else {}
    for first in (candidate.problems[0] for candidate in ranked):
        kinds.setdefault(first.kind or first.message, []).append(first)
    return sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0]))


def _worded(kind: str, problems: Sequence[Problem]) -> str:
    """A kind of problem, with its details if they are the same for all."""
    shown = {problem.shown for problem in problems}
    if len(shown) != 1 or (problems[0].obstacle is Obstacle.SILENT_BMC and len(problems) > 1):
        return kind
    return shown.pop() or kind


_UNKNOWN = "is not known: its inventory has not come yet"


def lacks(required: HardwareRequirements, has: Capabilities) -> Iterator[Problem]:
    """Return the requirements that the server does not meet."""
    yield from _text("architecture", required.architecture, has.architecture)
    yield from _text("vendor", required.vendor, has.vendor)
    yield from _text("model", required.model, has.model)
    yield from _number("cpuCores", Decimal(required.cpu_cores), has.cpu_cores, str(required.cpu_cores))
    yield from _number("memory", amount(required.memory), has.memory, canonical(required.memory))
    yield from _number("nicSpeed", amount(required.nic_speed), has.nic_speed, canonical(required.nic_speed))
    if required.disks is not None:
        yield from _disks(required.disks.count, required.disks.size, has)


def _text(field: str, pattern: str, value: str | None) -> Iterator[Problem]:
    if not pattern:
        return
    if value is None:
        yield Problem(f"{field} {_UNKNOWN}")
    elif not fnmatchcase(value.lower(), re.sub(r"([?[])", r"[\1]", pattern.lower())):  # only `*` is a wildcard
        yield Problem(f"{field} is {value!r}, not {pattern!r}")


def _number(field: str, required: Decimal, value: int | None, shown: str) -> Iterator[Problem]:
    if required <= 0:
        return
    if value is None:
        yield Problem(f"{field} {_UNKNOWN}")
    elif value < required:
        yield Problem(f"{field} is {value}, less than {shown}", f"{field} is less than {shown}")


def _disks(count: int, size: str | int, has: Capabilities) -> Iterator[Problem]:
    if has.disks is None:
        yield Problem(f"disks: their number {_UNKNOWN}")
        return
    enough = sum(1 for disk in has.disks if disk.size >= amount(size))
    if enough < count:
        shown = f" of at least {canonical(size)}" if amount(size) > 0 else ""
        yield Problem(f"disks: it has {enough}{shown}, and {count} are required")


_REASONS_SHOWN: Final = 3
"""Number of reasons in the message."""
_CLAIMED: Final = "claimed by others"
_HELD: Final = f"it is held ({HELD})"
_IN_ERROR: Final = "its status.state is Error"
_RESERVED: Final = "reserved for other Clusters"
_WIPED_FIRST: Final = Problem("its disks are being wiped completely")
