"""Predicates drop changes of watched objects that no decision depends on. Pure.

A predicate takes the old and the new state of an object; None stands for an object that does not exist. Predicates only
save work: a reconciler must reach the same decision if each of them passes everything. Where no predicate here fits,
any function of two states is one.

Much of what controllers write is for people: conditions and counters in a status. Owners add these reports up, which
may wait a moment (`Changes.delay_s`); what controllers act on may not (`actionable`).

Source: kubernetes-sigs/controller-runtime: pkg/predicate/predicate.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from ironbell.api.meta import Resource
from ironbell.api.unstructured import Unstructured

R = TypeVar("R", bound=Resource)
Predicate: TypeAlias = Callable[[R | None, R | None], bool]

_REPORTS: Final = frozenset({"conditions", "deprecated", "v1beta2"})
_UNSET: Final = object()


def changed(select: Callable[[R], Any], *, absent: Any = _UNSET) -> Predicate[R]:
    """A predicate that passes changes of the values that `select` reads.

    Creations and deletions pass as well, unless `absent` gives the value of an object that does not exist.
    """

    def passes(old: R | None, new: R | None) -> bool:
        if old is not None and new is not None:
            return bool(select(old) != select(new))
        if absent is _UNSET:
            return True
        return bool((absent if old is None else select(old)) != (absent if new is None else select(new)))

    return passes


def any_of(*predicates: Predicate[R]) -> Predicate[R]:
    """A predicate that passes whatever one of these passes."""
    return lambda old, new: any(predicate(old, new) for predicate in predicates)


def created_or_deleted(old: Resource | None, new: Resource | None) -> bool:
    """Pass creations and deletions only."""
    return old is None or new is None


def desired_state_changed(old: Resource | None, new: Resource | None) -> bool:
    """Pass changes of anything but the status."""
    if old is None or new is None or _metadata(old) != _metadata(new):
        return True
    if isinstance(old, Unstructured) and isinstance(new, Unstructured):
        return _differ(old.body, new.body, besides=("metadata", "status"))
    return _fields_differ(old, new, besides=("metadata", "status"))


def actionable(*, reports: Collection[str] = ()) -> Predicate[Resource]:
    """A predicate that passes changes of anything but what an object reports about itself.

    Conditions are reports, and so are the fields of the status that `reports` names: by attributes of a struct, or for
    objects of kinds that are known only at run time, by fields on the wire.
    """
    reported = _REPORTS.union(reports)

    def passes(old: Resource | None, new: Resource | None) -> bool:
        if old is None or new is None or desired_state_changed(old, new):
            return True
        if isinstance(old, Unstructured) and isinstance(new, Unstructured):
            return _differ(old.body.get("status") or {}, new.body.get("status") or {}, besides=reported)
        return _fields_differ(getattr(old, "status", None), getattr(new, "status", None), besides=reported)

    return passes


def _metadata(obj: Resource) -> msgspec.Struct:
    return msgspec.structs.replace(obj.metadata, resource_version="")


def _differ(old: Mapping[str, Any], new: Mapping[str, Any], *, besides: Collection[str]) -> bool:
    return any(name not in besides and old.get(name) != new.get(name) for name in {**old, **new})


def _fields_differ(old: msgspec.Struct | None, new: msgspec.Struct | None, *, besides: Collection[str]) -> bool:
    if old is None or new is None:
        return old is not new
    return any(name not in besides and getattr(old, name) != getattr(new, name) for name in new.__struct_fields__)
