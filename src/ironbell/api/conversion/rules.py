"""Rules that hold between two versions of an object, each good for both directions.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2/conversion.go, core/webhooks/conversion/common.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ironbell.api.conversion.paths import MISSING, Body, ConversionError, Path, objects, path, put, take, value_at
from ironbell.codec.durations import SECOND, DurationError, parse_duration, seconds_text

MOST_SECONDS: Final = 2**31 - 1


def to_seconds(value: Any) -> int:
    """A duration as Go writes it, such as `1h30m`, in whole seconds towards zero, as many as fit into 32 bits.

    Raises:
        ConversionError: the value is not a duration.
    """
    try:
        nanoseconds = parse_duration(value if isinstance(value, str) else "")
    except DurationError as error:
        raise ConversionError(f'failed to convert object: time: invalid duration "{value}"') from error
    whole = abs(nanoseconds) // SECOND
    return min(whole, MOST_SECONDS) if nanoseconds >= 0 else -whole


def from_seconds(value: Any) -> str:
    """Whole seconds as Go writes a duration, such as `50s`, `1m40s` or `8760h0m0s`."""
    return seconds_text(int(value))


ApiVersionOf = Callable[[str, str], str]
"""Group and kind to the API version (with its group) in which references are written.

Raises:
    ConversionError: the kind does not exist, or implements no contract.
"""


@dataclass(frozen=True, slots=True)
class Target:
    """Context of a conversion to the older version, besides the object."""

    namespace: str
    api_version_of: ApiVersionOf


class Rule(Protocol):
    """A difference between two versions at one place. Both directions change `body`, which is at the rule's own place.

    `kept` is what the annotation holds for this place: the object as it was stored; None if there is no annotation.
    """

    def up(self, body: Body, kept: Body | None) -> None: ...

    def down(self, body: Body, target: Target) -> None: ...


def _identity(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Move:
    """A field that is elsewhere, or is written in another way. A field without a value in `new` is absent in `old`."""

    old: Path
    new: Path
    to_new: Callable[[Any], Any] = _identity
    to_old: Callable[[Any], Any] = _identity

    def up(self, body: Body, kept: Body | None) -> None:
        value = take(body, self.old)
        if value is not MISSING and value is not None:
            put(body, self.new, self.to_new(value))

    def down(self, body: Body, target: Target) -> None:
        value = take(body, self.new)
        if value is not MISSING and value is not None:
            put(body, self.old, self.to_old(value))


@dataclass(frozen=True, slots=True)
class Restored:
    """A field that the older version has as a plain value and the stored one as an optional one: a zero comes back only
    where it was stored."""

    old: Path
    new: Path
    zero: bool | int = False

    def up(self, body: Body, kept: Body | None) -> None:
        value = take(body, self.old)
        if value is not MISSING and value:
            put(body, self.new, value)
        elif value_at(kept, self.new) == self.zero:
            put(body, self.new, self.zero)

    def down(self, body: Body, target: Target) -> None:
        value = take(body, self.new)
        if value is not MISSING and value:
            put(body, self.old, value)


@dataclass(frozen=True, slots=True)
class Written:
    """A field that the older version has as a plain value, so that the stored version always has one."""

    at: Path
    zero: bool | int = 0

    def up(self, body: Body, kept: Body | None) -> None:
        if value_at(body, self.at) in (MISSING, None):
            put(body, self.at, self.zero)

    def down(self, body: Body, target: Target) -> None:
        if value_at(body, self.at) == self.zero:
            take(body, self.at)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A field that only the older version has, and that means nothing any more."""

    at: Path

    def up(self, body: Body, kept: Body | None) -> None:
        take(body, self.at)

    def down(self, body: Body, target: Target) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Kept:
    """A field that only the stored version has, or that a client of the older version cannot change."""

    at: Path
    values_in_old: Mapping[str, str] | None = None
    """Values in the older version by those in the stored one; None if the older version lacks the field."""

    def up(self, body: Body, kept: Body | None) -> None:
        if kept is None:
            return
        value = value_at(kept, self.at)
        if value is MISSING:
            take(body, self.at)
        else:
            put(body, self.at, value)

    def down(self, body: Body, target: Target) -> None:
        value = take(body, self.at)
        if self.values_in_old is not None and value is not MISSING:
            put(body, self.at, self.values_in_old.get(value, value))


@dataclass(frozen=True, slots=True)
class Within:
    """Rules for an object further in, where there is one."""

    at: Path
    rules: tuple[Rule, ...]

    def up(self, body: Body, kept: Body | None) -> None:
        inner = value_at(body, self.at)
        if isinstance(inner, dict):
            apply_up(self.rules, inner, below(kept, self.at))

    def down(self, body: Body, target: Target) -> None:
        inner = value_at(body, self.at)
        if isinstance(inner, dict):
            apply_down(self.rules, inner, target)


@dataclass(frozen=True, slots=True)
class ForEach:
    """Rules for the objects of a list. The stored object is looked up by the field `key`, or by the place in a list of
    the same length."""

    at: Path
    rules: tuple[Rule, ...]
    key: str = ""

    def up(self, body: Body, kept: Body | None) -> None:
        entries = objects(value_at(body, self.at))
        stored = objects(value_at(kept, self.at))
        for number, entry in enumerate(entries):
            apply_up(self.rules, entry, None if kept is None else self._match(entry, number, len(entries), stored))

    def _match(self, entry: Body, number: int, count: int, stored: list[Body]) -> Body:
        if self.key:
            return next((candidate for candidate in stored if candidate.get(self.key) == entry.get(self.key)), {})
        return stored[number] if len(stored) == count else {}

    def down(self, body: Body, target: Target) -> None:
        for entry in objects(value_at(body, self.at)):
            apply_down(self.rules, entry, target)


@dataclass(frozen=True, slots=True)
class Reference:
    """An object of a provider: with version and namespace in the older version, with its group in the stored one."""

    old: Path
    new: Path

    def up(self, body: Body, kept: Body | None) -> None:
        reference = take(body, self.old)
        if isinstance(reference, dict):
            group = group_of(reference.get("apiVersion") or "")
            put(body, self.new, _filled(apiGroup=group, kind=reference.get("kind"), name=reference.get("name")))

    def down(self, body: Body, target: Target) -> None:
        reference = take(body, self.new)
        if not isinstance(reference, dict) or not reference:
            return
        kind = reference.get("kind", "")
        version = target.api_version_of(reference.get("apiGroup", ""), kind)
        reference_fields = _filled(
            apiVersion=version, kind=kind, name=reference.get("name"), namespace=target.namespace
        )
        put(body, self.old, reference_fields)


@dataclass(frozen=True, slots=True)
class TemplateReference:
    """A template: with its namespace in the older version, without it in the stored one; both have its version."""

    old: Path
    new: Path

    def up(self, body: Body, kept: Body | None) -> None:
        reference = take(body, self.old)
        if isinstance(reference, dict):
            values = _filled(**{name: reference.get(name) for name in ("kind", "name", "apiVersion")})
            if values:
                put(body, self.new, values)

    def down(self, body: Body, target: Target) -> None:
        reference = take(body, self.new)
        if isinstance(reference, dict) and reference:
            put(body, self.old, reference | _filled(namespace=target.namespace))


def apply_up(rules: tuple[Rule, ...], body: Body, kept: Body | None) -> None:
    """Bring the object at a place to the stored version."""
    for rule in rules:
        rule.up(body, kept)


def apply_down(rules: tuple[Rule, ...], body: Body, target: Target) -> None:
    """Bring the object at a place to the older version: the last rule first."""
    for rule in reversed(rules):
        rule.down(body, target)


def below(kept: Body | None, at: Path) -> Body | None:
    """Return the part of the annotation's object at a place."""
    if kept is None:
        return None
    inner = value_at(kept, at)
    return inner if isinstance(inner, dict) else {}


def move(old: str, new: str) -> Move:
    """A field that is elsewhere."""
    return Move(path(old), path(new))


def reference(at: str) -> Reference:
    """An object of a provider, in the same place of both versions."""
    return Reference(path(at), path(at))


def seconds(old: str, new: str) -> Move:
    """A duration in the older version, whole seconds in the stored one."""
    return Move(path(old), path(new), to_seconds, from_seconds)


def flag(at: str) -> Restored:
    """A bool in the older version, an optional one in the same place of the stored version."""
    return Restored(path(at), path(at))


def within(at: str, *rules: Rule) -> Within:
    """Rules for an object further in."""
    return Within(path(at), rules)


def for_each(at: str, *rules: Rule, key: str = "") -> ForEach:
    """Rules for the objects of a list."""
    return ForEach(path(at), rules, key)


def dropped(*places: str) -> tuple[Dropped, ...]:
    """Fields that only the older version has."""
    return tuple(Dropped(path(place)) for place in places)


def group_of(api_version: str) -> str:
    """The group of an API version.

    Raises:
        ConversionError: it has more than two parts.
    """
    parts = api_version.split("/")
    if len(parts) > _PARTS:
        raise ConversionError(
            "failed to convert object: failed to parse apiVersion: unexpected GroupVersion string: " + api_version
        )
    return parts[0] if len(parts) == _PARTS else ""


_PARTS: Final = 2


def _filled(**values: Any) -> Body:
    return {name: value for name, value in values.items() if value}
