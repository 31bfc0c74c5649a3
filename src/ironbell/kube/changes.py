"""What of a change somebody acts on, and what an object only tells of itself. Pure.

Much of what controllers write is for people: conditions and counters in a status. Others add it up, and that may wait a
moment; what they act on may not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from ironbell.api.meta import Resource
from ironbell.api.unstructured import Unstructured

_TELLS: Final = frozenset({"conditions", "deprecated", "v1beta2"})


def is_acted_on(old: Resource | None, new: Resource | None, *, tells: Collection[str] = ()) -> bool:
    """Whether a change is more than one of conditions. A coming and a going always are.

    `tells` are further fields of the status that only tell something: names of a struct's attributes, or for objects
    of kinds that are known only at run time, of fields as they are on the wire.
    """
    if old is None or new is None:
        return True
    if _metadata(old) != _metadata(new):
        return True
    told = _TELLS.union(tells)
    if isinstance(old, Unstructured) and isinstance(new, Unstructured):
        return _differ(old.body, new.body, but=("metadata", "status")) or _differ(
            old.body.get("status") or {}, new.body.get("status") or {}, but=told
        )
    before, now = getattr(old, "status", None), getattr(new, "status", None)
    return _fields_differ(old, new, but=("metadata", "status")) or _fields_differ(before, now, but=told)


def is_specified_anew(old: Resource | None, new: Resource | None) -> bool:
    """Whether anything but the status has changed."""
    if old is None or new is None:
        return True
    if _metadata(old) != _metadata(new):
        return True
    if isinstance(old, Unstructured) and isinstance(new, Unstructured):
        return _differ(old.body, new.body, but=("metadata", "status"))
    return _fields_differ(old, new, but=("metadata", "status"))


def _metadata(obj: Resource) -> msgspec.Struct:
    return msgspec.structs.replace(obj.metadata, resource_version="")


def _differ(old: Mapping[str, Any], new: Mapping[str, Any], *, but: Collection[str]) -> bool:
    return any(name not in but and old.get(name) != new.get(name) for name in {**old, **new})


def _fields_differ(old: msgspec.Struct | None, new: msgspec.Struct | None, *, but: Collection[str]) -> bool:
    if old is None or new is None:
        return old is not new
    return any(name not in but and getattr(old, name) != getattr(new, name) for name in new.__struct_fields__)
