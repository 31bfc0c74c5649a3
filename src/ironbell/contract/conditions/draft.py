"""Drafts of Cluster API's objects, which keep two sets of conditions: `status.conditions`, and those of v1beta1."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_type_hints

from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.kind import Kind
from ironbell.api.meta import Condition, Resource
from ironbell.contract.conditions.legacy import find_legacy, legacy_summary, set_legacy
from ironbell.contract.conditions.order import set_condition
from ironbell.kube.draft import Draft, replace

R = TypeVar("R", bound=Resource)
C = TypeVar("C", Condition, LegacyCondition)

MESSAGE_LIMIT: Final = 32768
"""Characters that the API accepts in the message of a condition; messages of providers may be longer."""
LEGACY_MESSAGE_LIMIT: Final = 10240


class ConditionsDraft(Draft[R]):
    """The next state of an object with both sets of conditions."""

    def __init__(self, kind: Kind[R], obj: R, now: datetime) -> None:
        super().__init__(kind, obj, now, set_condition=set_condition)

    @property
    def older(self) -> Any:
        """The part of the status that only the older API version has."""
        deprecated = self.status.deprecated
        held = deprecated.v1beta1 if deprecated is not None else None
        return _type_of(self._deprecated, "v1beta1")() if held is None else held

    def set_older(self, **changes: Any) -> None:
        """Change the part of the status that only the older API version has."""
        held = self.older
        changed = replace(held, **changes)
        if changed is not held:
            self.status = replace(self.status, deprecated=self._deprecated(v1beta1=changed))

    @property
    def _deprecated(self) -> Any:
        status: Any = type(self.status)
        return _type_of(status, "deprecated")

    def put(self, *conditions: Condition) -> None:
        super().put(*(_bounded(condition, MESSAGE_LIMIT) for condition in conditions))

    def legacy(self, condition_type: str) -> LegacyCondition | None:
        return find_legacy(self.older.conditions, condition_type)

    def put_legacy(self, *conditions: LegacyCondition | None) -> None:
        """Set conditions of the older version; None is ignored."""
        held = self.older.conditions
        for new in conditions:
            held = set_legacy(held, None if new is None else _bounded(new, LEGACY_MESSAGE_LIMIT), now=self.now)
        self.set_older(conditions=held)

    def summarize_legacy(self, *condition_types: str) -> None:
        """Set the older version's condition Ready from conditions of these types."""
        self.put_legacy(legacy_summary(self.older.conditions, types=condition_types))

    def drop_both(self, *condition_types: str) -> None:
        """Remove conditions from both sets."""
        self.drop(*condition_types)
        self.set_older(
            conditions=[condition for condition in self.older.conditions if condition.type not in condition_types]
        )


@cache
def _type_of(struct: Any, field: str) -> Any:
    """The type of an optional field."""
    return next(hint for hint in get_args(get_type_hints(struct)[field]) if hint is not NoneType)


def _bounded(condition: C, limit: int) -> C:
    """The condition with a message of at most `limit` characters."""
    text = condition.message
    return condition if len(text) <= limit else replace(condition, message=f"{text[: limit - 1]}…")
