"""How many objects of a kind are in which phase, and have which conditions, as metrics.

Kept with every change an informer sees, so that nobody counts objects when metrics are asked for. They say how many;
which ones `ironbell why` says.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ironbell.api.meta import Resource
from ironbell.kube.cache.informer import Informer
from ironbell.kube.manager import metrics

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
        left, entered = _phase(old), _phase(new)
        if left != entered:
            for phase, difference in ((left, -1), (entered, 1)):
                if phase is not None:
                    self._phases[phase] += difference
                    metrics.object_phases.labels(self._kind, phase).set(self._phases[phase])
        had, has = _states(before), _states(after)
        if had == has:
            return
        conditions = Counter(has)
        conditions.subtract(had)
        for (name, status), difference in conditions.items():
            if difference:
                self._conditions[name, status] += difference
                gauge = metrics.object_conditions.labels(self._kind, name, status)
                gauge.set(self._conditions[name, status])


def _phase(obj: Resource | None) -> str | None:
    """None for an object that is not there."""
    if obj is None:
        return None
    status = getattr(obj, "status", None)
    return getattr(status, "phase", "") or getattr(status, "state", "") or _NO_PHASE


def _states(status: Any) -> list[tuple[str, str]]:
    return [(condition.type, condition.status) for condition in getattr(status, "conditions", ())]
