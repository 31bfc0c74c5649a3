"""The steps of an upgrade: the versions of the control plane on the way, and those of the workers.

Kubernetes' control plane is upgraded by one minor version at a time; workers may be up to three behind.

Source: kubernetes-sigs/cluster-api: exp/topology/desiredstate/upgrade_plan.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ironbell.contract.clusters.versions import Version, VersionError, compare_builds, parse_version
from ironbell.controllers.capi.topology.desired.model import TopologyError

SKEW: Final = 3
"""Minor versions that workers may be behind."""


def version_of(text: str, name: str) -> Version:
    """Parse a version.

    Raises:
        TopologyError: the text is not a version; the message names it.
    """
    try:
        return parse_version(text)
    except VersionError as error:
        raise TopologyError(f"failed to parse {name} {text}: {error.message}") from error


def control_plane_steps(desired: str, current: str, allowed: Sequence[str] = ()) -> tuple[str, ...]:
    """The versions of the control plane on the way to the desired version, which is the last; empty if it has that
    already.

    Args:
        desired: the topology's version.
        current: the control plane's version.
        allowed: versions that the class lists, ascending; empty if it lists none.

    Raises:
        TopologyError: no upgrade path exists.
    """
    target, start = version_of(desired, "Cluster version"), version_of(current, "ControlPlane version")
    if str(target) == str(start):
        return ()
    steps = _listed(target, start, allowed) if allowed else (desired,)
    if not allowed and target.minor > start.minor + 1:
        raise TopologyError(f"cannot compute an upgrade plan from {current} to {desired}")
    _check_control_plane(steps, target, start, desired)
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


def _check_control_plane(steps: Sequence[str], target: Version, start: Version, desired: str) -> None:
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
            f" {desired}, ends with v{current} instead"
        )


def worker_steps(desired: str, current: str, lowest: str, steps: Sequence[str]) -> tuple[str, ...]:
    """The versions of the workers on the way: as few as the skew allows.

    Args:
        desired: the topology's version.
        current: the control plane's version.
        lowest: the lowest version of all workers; empty if there are none.
        steps: the steps of the control plane.

    Raises:
        TopologyError: no upgrade path exists.
    """
    if not lowest:
        return ()
    target, start = version_of(desired, "Cluster version"), version_of(lowest, "min workers version")
    if _compared(start, target) == 0:
        return ()
    by_minor = {version_of(text, "version").minor: text for text in (current, *steps)}
    planned: list[str] = []
    for minor in range(start.minor + SKEW, target.minor, SKEW):
        if minor not in by_minor:
            raise TopologyError(f"invalid upgrade plan; unable to identify version for minor {minor}")
        planned.append(by_minor[minor])
    if not planned or planned[-1] != desired:
        planned.append(desired)
    _check_workers(planned, start)
    return tuple(planned)


def _check_workers(steps: Sequence[str], start: Version) -> None:
    previous = start
    for number, text in enumerate(steps):
        version = version_of(text, "version")
        where = f"invalid workers upgrade plan, item {number}"
        if _compared(version, previous) <= 0:
            raise TopologyError(f"{where}; version {text} must be greater than v{previous}")
        if version.minor - previous.minor > SKEW:
            raise TopologyError(
                f"{where}; workers cannot go from minor {previous.minor} (v{previous}) to minor"
                f" {version.minor} ({text}), an intermediate step is required to comply"
                " with Kubernetes version skew rules"
            )
        previous = version


def lowest_version(versions: Iterable[str], control_plane: str) -> str:
    """The lowest of the workers' versions, with a leading v; empty if there are none. Of two versions without an order,
    it is the one that the control plane does not have.
    """
    plane = str(version_of(control_plane, "ControlPlane version"))
    lowest: Version | None = None
    for text in versions:
        version = version_of(text, "version")
        order = None if lowest is None else compare_builds(version, lowest)
        if lowest is None or order == -1 or (order is None and str(version) != plane):
            lowest = version
    return "" if lowest is None else f"v{lowest}"


def _compared(left: Version, right: Version) -> int:
    """Compare versions as `compare_builds` does; 2 if their builds have no order."""
    order = compare_builds(left, right)
    return 2 if order is None else order
