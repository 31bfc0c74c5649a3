"""How many objects of a kind are in which phase, and have which conditions, as metrics.

Kept with every change an informer sees, so that nobody counts objects when metrics are asked for. They say how many;
which ones `ironbell why` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ironbell.api.meta import Resource
from ironbell.kube import metrics
from ironbell.kube.informer import Informer

_NO_PHASE = "None"


class Tally:
    """The counts of one informer's objects, from now on and of what it holds."""

    def __init__(self, informer: Informer[Any]) -> None:
        self._kind = f"{informer.kind.kind}.{informer.kind.group}"  # there are Machines in several groups
        self._phases: Counter[str] = Counter()
        self._conditions: Counter[tuple[str, str]] = Counter()
        for obj in informer.store.list():
            self._changed(None, obj)
        informer.add_handler(self._changed)

    def _changed(self, old: Resource | None, new: Resource | None) -> None:
        before, after = getattr(old, "status", None), getattr(new, "status", None)
        if before is not None and after is not None and before == after:
            return
        self._count_phase(old, before, -1)
        self._count_phase(new, after, 1)
        conditions = Counter(_states(after))
        conditions.subtract(_states(before))
        for (name, status), difference in conditions.items():
            if difference:
                self._conditions[name, status] += difference
                gauge = metrics.object_conditions.labels(self._kind, name, status)
                gauge.set(self._conditions[name, status])

    def _count_phase(self, obj: Resource | None, status: Any, difference: int) -> None:
        if obj is None:
            return
        phase = getattr(status, "phase", "") or getattr(status, "state", "") or _NO_PHASE
        self._phases[phase] += difference
        metrics.object_phases.labels(self._kind, phase).set(self._phases[phase])


def _states(status: Any) -> Iterable[tuple[str, str]]:
    return [(condition.type, condition.status) for condition in getattr(status, "conditions", ())]
