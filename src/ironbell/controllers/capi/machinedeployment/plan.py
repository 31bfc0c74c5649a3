"""The plan of a rollout: the next number of replicas of each MachineSet. Pure numbers.

Growth of the new MachineSet is bounded by the surge over everything that exists or is meant to exist. Old ones shrink
only as far as enough Machines stay available, on the assumption that available Machines are deleted first, and that
Machines with a requested deletion are no longer available. Where that assumption blocks everything, one unavailable
Machine of an old MachineSet is given up.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinedeployment/machinedeployment_rollout_rollingupdate.go,
machinedeployment_rollout_ondelete.go, mdutil/util.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ironbell.controllers.capi.machinedeployment.limits import ROLLING_UPDATE, Limits

Plan: TypeAlias = Mapping[str, int]
"""New `spec.replicas` by MachineSet; a MachineSet without an entry is not changed."""


@dataclass(frozen=True, slots=True)
class Count:
    """The replicas of one MachineSet."""

    name: str
    created: str
    """RFC 3339; the order in which old MachineSets shrink."""
    spec: int = 0
    current: int = 0
    available: int = 0


def planned(limits: Limits, new: Count, old: Sequence[Count]) -> Plan:
    """The next step of a rollout by its strategy."""
    intents = _grown(limits, new, old)
    oldest_first = sorted(old, key=lambda count: (count.created, count.name))
    if limits.strategy != ROLLING_UPDATE:
        return intents | _shrunk_on_delete(limits, new, oldest_first, intents)
    intents |= _shrunk(limits, new, oldest_first, intents)
    return intents | _unblocked(new, oldest_first, intents)


def _grown(limits: Limits, new: Count, old: Sequence[Count]) -> dict[str, int]:
    """Grow the new MachineSet to the desired size, as far as the surge allows."""
    if new.spec == limits.replicas:
        return {}
    if new.spec > limits.replicas:
        return {new.name: limits.replicas}
    existing = sum(max(count.spec, count.current) for count in [*old, new])
    room = min(limits.replicas + limits.max_surge - existing, limits.replicas - new.spec)
    return {new.name: new.spec + room} if room > 0 else {}


def _shrunk(limits: Limits, new: Count, old: Sequence[Count], intents: Plan) -> dict[str, int]:
    """Shrink old MachineSets, first by their unavailable Machines."""
    everything = [*old, new]
    if not sum(count.spec for count in old):
        return {}
    pending = sum(max(count.current - min(count.spec, intents.get(count.name, count.spec)), 0) for count in everything)
    new_unavailable = max(new.spec - new.available, 0)
    budget = max(sum(count.spec for count in everything) - pending - limits.min_available - new_unavailable, 0)
    available = sum(count.available for count in everything)
    sizes: dict[str, int] = {}
    for only_unavailable in (True, False):
        for count in old:
            size = sizes.get(count.name, count.spec)
            cut, lost = _cut(count, size, budget, available - limits.min_available, only_unavailable=only_unavailable)
            available -= lost
            if cut > 0:
                sizes[count.name] = size - cut
                budget -= cut
    return sizes


def _cut(count: Count, size: int, budget: int, spare: int, *, only_unavailable: bool) -> tuple[int, int]:
    """The reduction of one old MachineSet, and the number of available Machines that it may cost at worst."""
    reduction = min(max(size - count.available, 0) if only_unavailable else size, budget)
    if reduction <= 0:
        return 0, 0
    if count.available <= 0:
        return reduction, 0
    deleted = max(count.current - (size - reduction), 0)
    if deleted > 0 and spare < deleted:
        kept = min(count.current - max(spare, 0), size)
        reduction = max(size - kept, 0)
        deleted = max(count.current - kept, 0)
    return reduction, min(count.available, deleted) if deleted > 0 else 0


def _unblocked(new: Count, old: Sequence[Count], intents: Plan) -> dict[str, int]:
    """Reduce an old MachineSet with an unavailable Machine by one, if the rollout is stuck otherwise."""
    everything = [*old, new]
    if sum(count.current for count in old) in (0, sum(count.available for count in old)):
        return {}
    if any(count.spec != count.current or count.name in intents for count in everything):
        return {}
    if new.available != new.current:
        return {}
    stuck = next((count for count in old if count.available != count.current and count.spec > 0), None)
    return {stuck.name: stuck.spec - 1} if stuck is not None else {}


def _shrunk_on_delete(limits: Limits, new: Count, old: Sequence[Count], intents: Plan) -> dict[str, int]:
    """Reduce old MachineSets by the Machines that a user deleted, and by the surplus over the desired size."""
    surplus = sum(count.spec for count in old) + intents.get(new.name, new.spec) - limits.replicas
    sizes: dict[str, int] = {}
    for count in old:
        deleted = max(count.spec - count.current, 0)
        if deleted:
            sizes[count.name] = count.spec - deleted
            surplus -= deleted
    for count in old:
        size = sizes.get(count.name, count.spec)
        cut = min(size, surplus)
        if cut > 0:
            sizes[count.name] = size - cut
            surplus -= cut
    return sizes


def proportional(limits: Limits, sets: Iterable[tuple[Count, int]], reported: int) -> Plan:
    """Spread a change of size over the MachineSets in proportion to their sizes, while the rollout is paused.

    Args:
        limits: the limits of the MachineDeployment.
        sets: the MachineSets that have replicas, each with its maximum by its annotation; 0 if unknown.
        reported: the replicas in the MachineDeployment's status, for a set without a maximum.
    """
    active = [(count, maximum) for count, maximum in sets if count.spec > 0]
    allowed = limits.replicas + limits.max_surge if limits.replicas > 0 else 0
    to_add = allowed - sum(count.spec for count, _ in active)
    if to_add == 0:
        return {}
    active.sort(key=lambda item: item[0].created, reverse=to_add > 0)
    active.sort(key=lambda item: item[0].spec, reverse=True)
    sizes: dict[str, int] = {}
    added = 0
    for count, maximum in active:
        share = _proportion(count, limits, maximum or reported, to_add - added)
        sizes[count.name] = count.spec + share
        added += share
    first = active[0][0].name
    sizes[first] = max(sizes[first] + to_add - added, 0)
    return {count.name: sizes[count.name] for count, _ in active if sizes[count.name] != count.spec}


def _proportion(count: Count, limits: Limits, maximum: int, left: int) -> int:
    """The part of a change of size for one MachineSet, which is never more than what remains of the change."""
    if left == 0:
        return 0
    if limits.replicas == 0:
        change = -count.spec
    else:
        grown = count.spec * (limits.replicas + limits.max_surge) / maximum if maximum else count.spec
        change = int(grown + 0.5) - count.spec
    return min(change, left) if left > 0 else max(change, left)
