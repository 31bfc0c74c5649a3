"""The steps of an upgrade: which versions the control plane goes through, and which of them the workers.

Kubernetes' control plane goes one minor version at a time; workers may be up to three behind.

Source: kubernetes-sigs/cluster-api: exp/topology/desiredstate/upgrade_plan.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ironbell.contract.clusters.versions import Version, VersionError, compare_builds, parse_version
from ironbell.controllers.capi.topology.errors import TopologyError

SKEW: Final = 3
"""Minor versions that workers may be behind."""


def version_of(text: str, what: str) -> Version:
    """A version that must be one.

    Raises:
        TopologyError: it is none.
    """
    try:
        return parse_version(text)
    except VersionError as error:
        raise TopologyError(f"failed to parse {what} {text}: {error.message}") from error


def control_plane_steps(wanted: str, current: str, allowed: Sequence[str] = ()) -> tuple[str, ...]:
    """Versions that the control plane goes through, the last one being the wanted one; none if it is there.

    Args:
        wanted: the topology's version.
        current: the control plane's.
        allowed: versions that the class lists, ascending; empty if it lists none.

    Raises:
        TopologyError: there is no way.
    """
    target, start = version_of(wanted, "Cluster version"), version_of(current, "ControlPlane version")
    if str(target) == str(start):
        return ()
    steps = _listed(target, start, allowed) if allowed else (wanted,)
    if not allowed and target.minor > start.minor + 1:
        raise TopologyError(f"cannot compute an upgrade plan from {current} to {wanted}")
    _check_control_plane(steps, target, start, wanted)
    return steps


def _listed(target: Version, start: Version, allowed: Sequence[str]) -> tuple[str, ...]:
    """The last listed version of each minor on the way."""
    way: list[tuple[Version, str]] = []
    for text in allowed:
        version = version_of(text, "version")
        if version <= start:
            continue
        if compare_builds(version, target) == 1:
            break
        way.append((version, text))
        if str(version) == str(target):
            break
    steps: list[str] = []
    minor = start.minor
    if way and minor == target.minor:
        steps.append(way[0][1])
    for version, text in way:
        if version.minor > minor:
            steps.append(text)
        elif steps:
            steps[-1] = text
        minor = version.minor
    return tuple(steps)


def _check_control_plane(steps: Sequence[str], target: Version, start: Version, wanted: str) -> None:
    current = start
    for number, text in enumerate(steps):
        version = version_of(text, "version")
        where = f"invalid ControlPlane upgrade plan: item {number}"
        if _compared(version, current) <= 0:
            raise TopologyError(f"{where}; version {text} must be greater than v{current}")
        if version.minor not in (current.minor, current.minor + 1):
            raise TopologyError(
                f"{where}; expecting a version with minor {current.minor} or {current.minor + 1}, found version {text}"
            )
        current = version
    if _compared(current, target) != 0:
        raise TopologyError(
            "invalid ControlPlane upgrade plan: control plane upgrade plan must end with version"
            f" {wanted}, ends with v{current} instead"
        )


def worker_steps(wanted: str, current: str, lowest: str, steps: Sequence[str]) -> tuple[str, ...]:
    """Versions that the workers go through: as few as the skew allows.

    Args:
        wanted: the topology's version.
        current: the control plane's.
        lowest: of all workers; empty if there are none.
        steps: of the control plane.

    Raises:
        TopologyError: there is no way.
    """
    if not lowest:
        return ()
    target, start = version_of(wanted, "Cluster version"), version_of(lowest, "min workers version")
    if _compared(start, target) == 0:
        return ()
    by_minor = {version_of(text, "version").minor: text for text in (current, *steps)}
    found: list[str] = []
    for minor in range(start.minor + SKEW, target.minor, SKEW):
        if minor not in by_minor:
            raise TopologyError(f"invalid upgrade plan; unable to identify version for minor {minor}")
        found.append(by_minor[minor])
    if not found or found[-1] != wanted:
        found.append(wanted)
    _check_workers(found, start)
    return tuple(found)


def _check_workers(steps: Sequence[str], start: Version) -> None:
    before = start
    for number, text in enumerate(steps):
        version = version_of(text, "version")
        where = f"invalid workers upgrade plan, item {number}"
        if _compared(version, before) <= 0:
            raise TopologyError(f"{where}; version {text} must be greater than v{before}")
        if version.minor - before.minor > SKEW:
            raise TopologyError(
                f"{where}; workers cannot go from minor {before.minor} (v{before}) to minor {version.minor} ({text}),"
                " an intermediate step is required to comply with Kubernetes version skew rules"
            )
        before = version


def lowest_version(versions: Iterable[str], control_plane: str) -> str:
    """The lowest of the workers' versions, with a leading v; of two that have no order, the one that is not the
    control plane's. Empty if there are none."""
    plane = str(version_of(control_plane, "ControlPlane version"))
    found: Version | None = None
    for text in versions:
        version = version_of(text, "version")
        order = None if found is None else compare_builds(version, found)
        if found is None or order == -1 or (order is None and str(version) != plane):
            found = version
    return "" if found is None else f"v{found}"


def _compared(one: Version, other: Version) -> int:
    """As `compare_builds`; 2 where builds have no order."""
    order = compare_builds(one, other)
    return 2 if order is None else order
