"""The plan of flow control: schemas in their order, with their levels, kept in step with the store.

A schema whose level does not exist is skipped. The mandatory schemas and levels are in force even while they are
missing.

Source: kubernetes/apiserver: pkg/util/flowcontrol/apf_controller.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec
import structlog

from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Attributes
from ironbell.apiserver.flowcontrol import suggested
from ironbell.apiserver.flowcontrol.classify import match, ordered, rules_of
from ironbell.apiserver.flowcontrol.spec import (
    BY_NAMESPACE,
    BY_USER,
    CATCH_ALL,
    EXEMPT,
    LEVELS,
    SCHEMAS,
    FlowSchema,
    PriorityLevel,
    Rules,
    read_level,
    read_schema,
)
from ironbell.apiserver.store.entry import Change, Entry
from ironbell.apiserver.store.store import Store

_IDENTITIES = 1024
"""How many identities are remembered with the rules that are about them."""

_log = structlog.get_logger()


class Line(msgspec.Struct, frozen=True, eq=False):
    """A schema with its level, and the response headers that name both."""

    schema: FlowSchema
    level: PriorityLevel
    headers: dict[str, str]

    def flow(self, identity: Identity, namespace: str) -> str:
        """The flow of a request: those of one schema with the same user or namespace."""
        method = self.schema.spec.distinguisher_method
        kind = method.type if method is not None else ""
        distinguisher = identity.user if kind == BY_USER else namespace if kind == BY_NAMESPACE else ""
        return f"{self.schema.metadata.name}/{distinguisher}"


@dataclass(eq=False)
class Plan:
    """Schemas and levels at one moment."""

    lines: tuple[Line, ...]
    """Schemas in the order in which requests are compared with them."""
    levels: tuple[PriorityLevel, ...]
    _known: dict[tuple[str, tuple[str, ...]], tuple[tuple[Line, tuple[Rules, ...]], ...]] = field(default_factory=dict)

    def classify(self, identity: Identity, attributes: Attributes) -> Line:
        """The first schema that matches a request."""
        for line, parts in self._lines_for(identity):
            for rules in parts:
                if match(rules, attributes):
                    return line
        return next(line for line in self.lines if line.schema.metadata.name == CATCH_ALL)

    def _lines_for(self, identity: Identity) -> tuple[tuple[Line, tuple[Rules, ...]], ...]:
        """The schemas with rules about an identity; kept, because clients send many requests."""
        key = (identity.user, identity.groups)
        lines = self._known.get(key)
        if lines is None:
            if len(self._known) >= _IDENTITIES:
                self._known.clear()
            candidates = ((line, rules_of(line.schema, identity)) for line in self.lines)
            lines = self._known[key] = tuple((line, rules) for line, rules in candidates if rules)
        return lines


def plan_of(schemas: Iterable[FlowSchema], levels: Iterable[PriorityLevel]) -> Plan:
    """The plan for these schemas and levels."""
    by_name = {level.metadata.name: level for level in _MANDATORY_LEVELS} | {
        level.metadata.name: level for level in levels
    }
    known = [schema for schema in schemas if schema.level in by_name]
    names = {schema.metadata.name for schema in known}
    first = [schema for schema in _MANDATORY_SCHEMAS if schema.metadata.name == EXEMPT and EXEMPT not in names]
    last = [schema for schema in _MANDATORY_SCHEMAS if schema.metadata.name == CATCH_ALL and CATCH_ALL not in names]
    lines = (_line(schema, by_name[schema.level]) for schema in (*first, *ordered(known), *last))
    return Plan(tuple(lines), tuple(by_name.values()))


def _line(schema: FlowSchema, level: PriorityLevel) -> Line:
    headers = {
        "X-Kubernetes-PF-FlowSchema-UID": schema.metadata.uid,
        "X-Kubernetes-PF-PriorityLevel-UID": level.metadata.uid,
    }
    return Line(schema, level, headers)


_MANDATORY_SCHEMAS = tuple(msgspec.convert(schema, FlowSchema) for schema in suggested.MANDATORY_SCHEMAS)
_MANDATORY_LEVELS = tuple(msgspec.convert(level, PriorityLevel) for level in suggested.MANDATORY_LEVELS)


class FlowControl:
    """The plan of a server."""

    def __init__(self) -> None:
        self._schemas: dict[str, FlowSchema] = {}
        self._levels: dict[str, PriorityLevel] = {}
        self._listeners: list[Callable[[Plan], None]] = []
        self.plan = plan_of((), ())

    def follow(self, store: Store) -> None:
        """Read the stored objects, and follow changes."""
        for resource in (SCHEMAS, LEVELS):
            for entry in store.objects(resource).entries():
                self._take(entry)
        self._rebuild()
        store.listen(self.apply)

    def listen(self, listener: Callable[[Plan], None]) -> None:
        """Call the listener with the plan, now and whenever it changes."""
        self._listeners.append(listener)
        listener(self.plan)

    def apply(self, change: Change) -> None:
        """Apply one change."""
        entry = change.entry
        if entry.resource not in (SCHEMAS, LEVELS):
            return
        previous = self._schemas.get(entry.name), self._levels.get(entry.name)
        if change.deleted:
            (self._schemas if entry.resource == SCHEMAS else self._levels).pop(entry.name, None)
        else:
            self._take(entry)
        if previous != (self._schemas.get(entry.name), self._levels.get(entry.name)):
            self._rebuild()

    def schema(self, name: str) -> FlowSchema | None:
        """A stored schema."""
        return self._schemas.get(name)

    def level(self, name: str) -> PriorityLevel | None:
        """A stored level."""
        return self._levels.get(name)

    @property
    def schemas(self) -> tuple[FlowSchema, ...]:
        """All stored schemas."""
        return tuple(self._schemas.values())

    def _take(self, entry: Entry) -> None:
        try:
            if entry.resource == SCHEMAS:
                self._schemas[entry.name] = read_schema(entry.body)
            else:
                self._levels[entry.name] = read_level(entry.body)
        except msgspec.MsgspecError as error:
            # stored by another release; writes are checked
            _log.warning("object cannot be read and is not in force", resource=entry.resource, name=entry.name,
                         cause=str(error))  # fmt: skip

    def _rebuild(self) -> None:
        self.plan = plan_of(self._schemas.values(), self._levels.values())
        for listener in self._listeners:
            listener(self.plan)
