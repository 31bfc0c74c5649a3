"""Semantic versions and constraints.

Source: Masterminds/semver v3.3.0: version.go, constraints.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from ironbell.codec.gotemplate.errors import CallError
from ironbell.codec.gotemplate.functions import Function, Library, P
from ironbell.codec.gotemplate.values import Opaque, Uint64

VERSIONS = Library()
_add = VERSIONS.add

_MAX_CHARS = 1000
_TAIL = r"(-([0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?"
_VERSION = re.compile(rf"v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?{_TAIL}")
_PART = r"[0-9|x|X|\*]+"
_WILD = rf"v?({_PART})(\.{_PART})?(\.{_PART})?{_TAIL}"
_WILD_PLAIN = re.sub(r"\((?!\?)", "(?:", _WILD)
# In the order in which Go's leftmost-first alternation tries them.
_OPS = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^"
_SPACE = r"[\t\n\f\r ]"
_RANGE = re.compile(rf"{_SPACE}*({_WILD_PLAIN}){_SPACE}+-{_SPACE}+({_WILD_PLAIN}){_SPACE}*")
_CONSTRAINT = re.compile(rf"{_SPACE}*({_OPS}){_SPACE}*({_WILD}){_SPACE}*")
_FIND = re.compile(rf"(?:{_OPS}){_SPACE}*(?:{_WILD_PLAIN})")
_VALID = re.compile(
    rf"{_SPACE}*(?:{_OPS}){_SPACE}*(?:{_WILD_PLAIN}){_SPACE}*"
    rf"(?:(?:{_SPACE}+|,{_SPACE}*)(?:{_OPS}){_SPACE}*(?:{_WILD_PLAIN}){_SPACE}*)*"
)
_NUMBER_MAX: Final = (1 << 64) - 1


@dataclass(frozen=True)
class Version(Opaque):
    """A version, with the methods that templates call on it."""

    major: int
    minor: int
    patch: int
    pre: str
    metadata: str
    original: str = field(compare=False)
    type_name = "*semver.Version"
    kind = "ptr"

    def __str__(self) -> str:
        pre = f"-{self.pre}" if self.pre else ""
        metadata = f"+{self.metadata}" if self.metadata else ""
        return f"{self.major}.{self.minor}.{self.patch}{pre}{metadata}"

    @cached_property
    def methods(self) -> dict[str, Any]:
        comparisons: dict[str, Callable[[Version], Any]] = {
            "Compare": lambda right: compare(self, right),
            "Equal": lambda right: compare(self, right) == 0,
            "LessThan": lambda right: compare(self, right) < 0,
            "LessThanEqual": lambda right: compare(self, right) <= 0,
            "GreaterThan": lambda right: compare(self, right) > 0,
            "GreaterThanEqual": lambda right: compare(self, right) >= 0,
        }
        return {
            "Major": lambda: Uint64(self.major),
            "Minor": lambda: Uint64(self.minor),
            "Patch": lambda: Uint64(self.patch),
            "Prerelease": lambda: self.pre,
            "Metadata": lambda: self.metadata,
            "Original": lambda: self.original,
            "String": lambda: str(self),
            **{name: Function(name, (P.VERSION,), None, call) for name, call in comparisons.items()},
        }


@_add("semverCompare", P.STRING, P.STRING)
def _semver_compare(constraint: str, text: str) -> bool:
    alternatives = _parse_constraints(constraint)
    version = parse_version(text)
    return any(all(part.holds(version) for part in parts) for parts in alternatives)


@_add("semver", P.STRING)
def parse_version(text: str) -> Version:
    """A version, whose minor and patch number may be missing.

    Raises:
        CallError: the text is not a version.
    """
    match = _VERSION.fullmatch(text) if len(text) <= _MAX_CHARS else None
    if match is None:
        raise CallError("Invalid Semantic Version")
    numbers = [int((match[index] or "0").removeprefix(".")[:30]) for index in (1, 2, 3)]
    if max(numbers) > _NUMBER_MAX:
        raise CallError("Error parsing version segment")
    pre = match[5] or ""
    if any(part.isdecimal() and len(part) > 1 and part[0] == "0" for part in pre.split(".")):
        raise CallError("Version segment starts with 0")
    major, minor, patch = numbers
    return Version(major, minor, patch, pre=pre, metadata=match[7] or "", original=text)


def compare(left: Version, right: Version) -> int:
    """Compare: -1, 0 or 1; build metadata is ignored."""
    numbers = [(getattr(left, name), getattr(right, name)) for name in ("major", "minor", "patch")]
    for number, other in numbers:
        if number != other:
            return -1 if number < other else 1
    if not left.pre or not right.pre:
        return bool(right.pre) - bool(left.pre)
    return _compare_pre(left.pre, right.pre)


def _compare_pre(left: str, right: str) -> int:
    lefts, rights = left.split("."), right.split(".")
    for index in range(max(len(lefts), len(rights))):
        left = lefts[index] if index < len(lefts) else ""
        right = rights[index] if index < len(rights) else ""
        if left != right:
            return _compare_part(left, right)
    return 0


def _compare_part(left: str, right: str) -> int:
    if not left or not right:
        return 1 if left else -1
    numbers = [int(part) if part.isdecimal() and len(part) < 20 else None for part in (left, right)]
    if numbers[0] is None and numbers[1] is None:
        return 1 if left > right else -1
    if numbers[0] is None or numbers[1] is None:
        return 1 if numbers[0] is None else -1
    return 1 if numbers[0] > numbers[1] else -1


@dataclass(frozen=True, slots=True)
class _Constraint:
    """An operator and a version; the flags name the numbers that were left open."""

    op: str
    version: Version
    dirty: bool
    minor_dirty: bool
    patch_dirty: bool

    def holds(self, version: Version) -> bool:
        if version.pre and not self.version.pre and (self.op != "!=" or self.dirty):
            return False
        return _CHECKS[self.op](version, self)


def _parse_constraints(text: str) -> list[list[_Constraint]]:
    if len(text) > _MAX_CHARS:
        raise CallError("improper constraint")
    # Runs of white space mean what one blank means, and would make matching slow.
    text = re.sub(rf"{_SPACE}+", " ", text)
    text = _RANGE.sub(lambda match: f">= {match[1]}, <= {match[2]} ", text)
    alternatives = []
    for alternative in text.split("||"):
        if not _VALID.fullmatch(alternative):
            raise CallError("improper constraint")
        alternatives.append([_parse_constraint(part) for part in _FIND.findall(alternative) or [alternative]])
    return alternatives


def _parse_constraint(text: str) -> _Constraint:
    match = _CONSTRAINT.fullmatch(text)
    if match is None:
        raise CallError("improper constraint")
    op, _, major, minor, patch, pre = match.group(1, 2, 3, 4, 5, 6)
    tail = pre or ""
    minor_dirty = patch_dirty = False
    if _is_wild(major):
        version = f"0.0.0{tail}"
        dirty = True
    elif minor is None or _is_wild(minor[1:]):
        version, dirty, minor_dirty = f"{major}.0.0{tail}", True, True
    elif patch is None or _is_wild(patch[1:]):
        version, dirty, patch_dirty = f"{major}{minor}.0{tail}", True, True
    else:
        version, dirty = match[2], False
    try:
        parsed = parse_version(version)
    except CallError:
        raise CallError("constraint Parser Error") from None
    return _Constraint(op, parsed, dirty, minor_dirty, patch_dirty)


def _is_wild(text: str) -> bool:
    return text in ("x", "X", "*")


def _not_equal(version: Version, constraint: _Constraint) -> bool:
    required = constraint.version
    if constraint.dirty:
        if required.major != version.major:
            return True
        if required.minor != version.minor and not constraint.minor_dirty:
            return True
        if constraint.minor_dirty:
            return False
        if required.patch != version.patch and not constraint.patch_dirty:
            return True
        if constraint.patch_dirty:
            return bool(version.pre or required.pre) and _compare_pre(version.pre, required.pre) != 0
    return compare(version, required) != 0


def _greater(version: Version, constraint: _Constraint) -> bool:
    required = constraint.version
    if constraint.dirty:
        if version.major != required.major:
            return version.major > required.major
        if constraint.minor_dirty:
            return False
        if constraint.patch_dirty:
            return version.minor > required.minor
    return compare(version, required) > 0


def _less_or_equal(version: Version, constraint: _Constraint) -> bool:
    required = constraint.version
    if not constraint.dirty:
        return compare(version, required) <= 0
    if version.major != required.major:
        return version.major < required.major
    return version.minor <= required.minor or constraint.minor_dirty


def _tilde(version: Version, constraint: _Constraint) -> bool:
    required = constraint.version
    if compare(version, required) < 0:
        return False
    anything = required.major == required.minor == required.patch == 0
    if anything and not constraint.minor_dirty and not constraint.patch_dirty:
        return True
    return version.major == required.major and (version.minor == required.minor or constraint.minor_dirty)


def _tilde_or_equal(version: Version, constraint: _Constraint) -> bool:
    return _tilde(version, constraint) if constraint.dirty else compare(version, constraint.version) == 0


def _caret(version: Version, constraint: _Constraint) -> bool:
    required = constraint.version
    if compare(version, required) < 0:
        return False
    if required.major > 0 or constraint.minor_dirty:
        return version.major == required.major
    if version.major > 0:
        return False
    if required.minor > 0 or constraint.patch_dirty:
        return version.minor == required.minor
    return version.minor == 0 and version.patch == required.patch


_CHECKS: Final[dict[str, Callable[[Version, _Constraint], bool]]] = {
    "": _tilde_or_equal,
    "=": _tilde_or_equal,
    "!=": _not_equal,
    ">": _greater,
    "<": lambda version, constraint: compare(version, constraint.version) < 0,
    ">=": lambda version, constraint: compare(version, constraint.version) >= 0,
    "=>": lambda version, constraint: compare(version, constraint.version) >= 0,
    "<=": _less_or_equal,
    "=<": _less_or_equal,
    "~": _tilde,
    "~>": _tilde,
    "^": _caret,
}
