"""Numbers of objects of a kind by phase and by condition, as metrics.

Updated with every change that an informer sees, so that scrapes of the metrics count no objects. They have numbers
only; `ironbell why` names the objects.
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
        old_status, new_status = getattr(old, "status", None), getattr(new, "status", None)
        if old_status is not None and new_status is not None and old_status == new_status:
            return
        left, entered = _phase(old), _phase(new)
        if left != entered:
            for phase, difference in ((left, -1), (entered, 1)):
                if phase is not None:
                    self._phases[phase] += difference
                    metrics.object_phases.labels(self._kind, phase).set(self._phases[phase])
        old_states, new_states = _states(old_status), _states(new_status)
        if old_states == new_states:
            return
        conditions = Counter(new_states)
        conditions.subtract(old_states)
        for (name, status), difference in conditions.items():
            if difference:
                self._conditions[name, status] += difference
                gauge = metrics.object_conditions.labels(self._kind, name, status)
                gauge.set(self._conditions[name, status])


def _phase(obj: Resource | None) -> str | None:
    """Return the phase of an object; None if it does not exist."""
    if obj is None:
        return None
    status = getattr(obj, "status", None)
    return getattr(status, "phase", "") or getattr(status, "state", "") or _NO_PHASE


def _states(status: Any) -> list[tuple[str, str]]:
    return [(condition.type, condition.status) for condition in getattr(status, "conditions", ())]
