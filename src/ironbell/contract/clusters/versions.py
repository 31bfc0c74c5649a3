"""Versions: of Kubernetes (semantic versions with a `v`) and of APIs (`v1beta2`), read and compared.

Source: semver.org 2.0.0; blang/semver: ParseTolerant, which upstream reads versions with; kubernetes-sigs/cluster-api:
util/version/version.go (build metadata); kubernetes/apimachinery: pkg/version/helpers.go (API versions).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

from ironbell.base.errors import IronbellError, Retry

_LONGEST = 256
_CORE: Final = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?((?:-[0-9A-Za-z.-]+)?)((?:\+[0-9A-Za-z.-]+)?)")
_KUBERNETES: Final = re.compile(r"v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)([-0-9a-zA-Z_\.+]*)?")
_API: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES: Final = {"alpha": 0, "beta": 1, None: 2}


class VersionError(IronbellError):
    """A text is not a version."""

    reason = "InvalidVersion"
    retry = Retry.NEVER


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A semantic version. It is ordered by everything but its build metadata; see `compare_builds` for those."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()
    build: tuple[str, ...] = ()

    @property
    def core(self) -> Version:
        """The version without its prerelease and build."""
        return Version(self.major, self.minor, self.patch)

    @property
    def precedence(self) -> tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]:
        """Key that orders versions."""
        return (self.major, self.minor, self.patch, not self.prerelease, tuple(map(_identifier, self.prerelease)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.precedence == other.precedence

    def __lt__(self, other: Version) -> bool:
        return self.precedence < other.precedence

    def __hash__(self) -> int:
        return hash(self.precedence)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += f"-{'.'.join(self.prerelease)}"
        return f"{text}+{'.'.join(self.build)}" if self.build else text


def parse_version(text: str) -> Version:
    """Read a version as upstream does: with or without `v`, and with missing numbers as zero.

    Raises:
        VersionError: the text is not a version.
    """
    if len(text) > _LONGEST:
        raise VersionError(f"{text[:40]!r}…: a version has at most {_LONGEST} characters")
    match = _CORE.fullmatch(text.strip())
    if match is None:
        raise VersionError(f"{text!r} is not a semantic version such as v1.34.2")
    major, minor, patch, prerelease, build = match.groups()
    if (prerelease or build) and patch is None:
        raise VersionError(f"{text!r}: a version with a suffix needs all three numbers, such as v1.34.2-rc.1")
    parts = (tuple(prerelease[1:].split(".")) if prerelease else (), tuple(build[1:].split(".")) if build else ())
    if any(part == "" for suffix in parts for part in suffix):
        raise VersionError(f"{text!r}: a part between dots is empty")
    if any(part.isdecimal() and part != str(int(part)) for part in parts[0]):
        raise VersionError(f"{text!r}: a number begins with a zero")
    return Version(int(major), int(minor or 0), int(patch or 0), *parts)


def find_version(text: str) -> Version | None:
    """Return the same as `parse_version`, with None for a text that is not a version."""
    try:
        return parse_version(text)
    except VersionError:
        return None


def is_kubernetes_version(text: str) -> bool:
    """Return whether a text has the form that a Kubernetes version must have in a spec."""
    return _KUBERNETES.fullmatch(text) is not None


def compare_builds(left: Version, right: Version) -> int | None:
    """-1, 0 or 1 by everything, build metadata last; None if only those differ and have no order (as commits have)."""
    if left != right:
        return -1 if left < right else 1
    for own, others in zip(left.build, right.build, strict=False):
        if own == others:
            continue
        if own.isdecimal() and others.isdecimal():
            if int(own) != int(others):
                return -1 if int(own) < int(others) else 1
        elif own.isdecimal() or others.isdecimal():
            return -1 if own.isdecimal() else 1
        else:
            return None
    return (len(left.build) > len(right.build)) - (len(left.build) < len(right.build))


def is_newer(left: Version, right: Version) -> bool:
    """Return whether a version is newer than another; also if only their builds differ without an order."""
    order = compare_builds(left, right)
    return order is None or order > 0


def sort_key(text: str) -> tuple[object, ...]:
    """For sorting versions that may not be any: those come first, by their text."""
    version = find_version(text)
    if version is None:
        return (0, (), text)
    return (1, version.precedence, tuple(map(_identifier, version.build)), text)


def api_version_key(text: str) -> tuple[bool, int, int, int, tuple[int, ...]]:
    """For sorting API versions, the most mature last: v1alpha1, v1beta1, v1beta2, v1, v2; others before them all."""
    match = _API.fullmatch(text)
    if match is None:
        return (False, 0, 0, 0, (*(-ord(character) for character in text), 1))
    major, stage, number = match.groups()
    return (True, _STAGES[stage], int(major), int(number or 0), ())


def _identifier(part: str) -> tuple[bool, int, str]:
    return (False, int(part), "") if part.isdecimal() else (True, 0, part)
