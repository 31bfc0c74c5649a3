"""Steps of upgrades, and which version everything has next."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.controllers.capi.topology.desired.model import TopologyError
from ironbell.controllers.capi.topology.desired.plan import control_plane_steps, lowest_version, worker_steps
from ironbell.controllers.capi.topology.desired.versions import DesiredWorker, RunningWorker, Versions, next_versions

LISTED = ("v1.31.0", "v1.32.0", "v1.32.4", "v1.33.1", "v1.34.0", "v1.35.2", "v1.35.3")
HOLD = "topology.cluster.x-k8s.io/hold-upgrade-sequence"
DEFER = "topology.cluster.x-k8s.io/defer-upgrade"


@pytest.mark.parametrize(
    ("desired", "current", "allowed", "steps"),
    [
        ("v1.34.1", "v1.34.1", (), ()),
        ("v1.34.1", "v1.34.0", (), ("v1.34.1",)),
        ("v1.35.0", "v1.34.1", (), ("v1.35.0",)),
        ("v1.34.0+b2", "v1.34.0+b1", (), ("v1.34.0+b2",)),
        ("v1.34.0", "v1.31.0", LISTED, ("v1.32.4", "v1.33.1", "v1.34.0")),
        ("v1.32.4", "v1.31.0", LISTED, ("v1.32.4",)),
        ("v1.32.4", "v1.32.0", LISTED, ("v1.32.4",)),
        ("v1.35.3", "v1.35.2", LISTED, ("v1.35.3",)),
        ("v1.35.2", "v1.34.0", LISTED, ("v1.35.2",)),
    ],
)
def test_steps_of_the_control_plane(
    desired: str, current: str, allowed: tuple[str, ...], steps: tuple[str, ...]
) -> None:
    assert control_plane_steps(desired, current, allowed) == steps


@pytest.mark.parametrize(
    ("desired", "current", "allowed", "problem"),
    [
        ("v1.36.0", "v1.34.0", (), "cannot compute an upgrade plan from v1.34.0 to v1.36.0"),
        ("v1.33.0", "v1.34.0", (), "version v1.33.0 must be greater than v1.34.0"),
        ("v1.34.0", "v1.31.0", ("v1.31.0", "v1.34.0"), "expecting a version with minor 31 or 32"),
        ("v1.36.0", "v1.34.0", LISTED, "must end with version v1.36.0, ends with v1.35.3"),
        ("nonsense", "v1.34.0", (), "failed to parse Cluster version nonsense"),
    ],
)
def test_impossible_upgrades(desired: str, current: str, allowed: tuple[str, ...], problem: str) -> None:
    with pytest.raises(TopologyError) as caught:
        control_plane_steps(desired, current, allowed)
    assert problem in caught.value.message


@pytest.mark.parametrize(
    ("desired", "current", "lowest", "steps", "expected"),
    [
        ("v1.35.0", "v1.34.0", "", ("v1.35.0",), ()),
        ("v1.35.0", "v1.35.0", "v1.35.0", (), ()),
        ("v1.35.0", "v1.34.0", "v1.34.0", ("v1.35.0",), ("v1.35.0",)),
        ("v1.34.0", "v1.31.0", "v1.31.0", ("v1.32.4", "v1.33.1", "v1.34.0"), ("v1.34.0",)),
        ("v1.35.0", "v1.31.0", "v1.31.0", ("v1.32.4", "v1.33.1", "v1.34.0", "v1.35.0"), ("v1.34.0", "v1.35.0")),
        ("v1.35.0", "v1.34.0", "v1.31.0", ("v1.35.0",), ("v1.34.0", "v1.35.0")),
    ],
)
def test_workers_are_upgraded_as_seldom_as_the_skew_allows(
    desired: str, current: str, lowest: str, steps: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert worker_steps(desired, current, lowest, steps) == expected


def test_workers_that_are_too_far_behind_have_no_way() -> None:
    with pytest.raises(TopologyError, match="unable to identify version for minor 33"):
        worker_steps("v1.35.0", "v1.34.0", "v1.30.0", ("v1.35.0",))


@pytest.mark.parametrize(
    ("versions", "lowest"),
    [((), ""), (("v1.34.0", "v1.33.2", "v1.35.0"), "v1.33.2"), (("v1.35.0+a", "v1.35.0+b"), "v1.35.0+a")],
)
def test_the_lowest_version_of_the_workers(versions: tuple[str, ...], lowest: str) -> None:
    assert lowest_version(versions, "v1.35.0+b") == lowest


def plane(version: str, *running: str) -> ControlPlane:
    body: dict[str, Any] = {"spec": {"version": version, "replicas": 3}}
    if running:
        body["status"] = {"versions": [{"version": item, "replicas": 1} for item in running]}
    return ControlPlane(body, "v1beta2")


def versions(
    control_plane: ControlPlane | None,
    *workers: tuple[str, str] | tuple[str, str, dict[str, str]],
    upgrading: tuple[str, ...] = (),
    desired: str = "v1.35.0",
    **more: Any,
) -> Versions:
    """Workers by name, version (empty: not there yet) and annotations."""
    names = [DesiredWorker(worker[0], worker[2] if len(worker) > 2 else {}) for worker in workers]
    running = {item[0]: RunningWorker(f"prod-{item[0]}", item[1], item[0] in upgrading) for item in workers if item[1]}
    return next_versions(desired, control_plane, names, running, **more)


def test_everything_is_created_with_the_topologys_version() -> None:
    result = versions(None, ("a", ""), ("b", ""))
    assert result.control_plane.version == "v1.35.0"
    assert result.deployments.versions == {"a": "v1.35.0", "b": "v1.35.0"}
    assert not result.is_upgrading


@pytest.mark.parametrize(
    ("control_plane", "upgrading", "state"),
    [
        (plane("v1.34.0"), (), "is_provisioning"),
        (plane("v1.34.0", "v1.33.0", "v1.34.0"), (), "is_upgrading"),
        (plane("v1.34.0", "v1.34.0"), ("a",), "is_pending"),
    ],
)
def test_the_control_plane_keeps_its_version_during_operations(
    control_plane: ControlPlane, upgrading: tuple[str, ...], state: str
) -> None:
    result = versions(control_plane, ("a", "v1.34.0"), ("new", ""), upgrading=upgrading)
    assert result.control_plane.version == "v1.34.0"
    assert getattr(result.control_plane, state)
    assert result.deployments.pending == {"prod-a"}
    assert result.deployments.not_created == {"new"}


def test_the_control_plane_is_upgraded_first() -> None:
    result = versions(plane("v1.34.0", "v1.34.0"), ("a", "v1.34.0"))
    assert (result.control_plane.version, result.control_plane.is_starting) == ("v1.35.0", True)
    assert result.deployments.versions == {"a": "v1.34.0"}
    assert result.deployments.pending == {"prod-a"}


@pytest.mark.parametrize(("concurrency", "started"), [(1, {"prod-a"}), (2, {"prod-a", "prod-b"})])
def test_workers_follow_a_few_at_a_time(concurrency: int, started: set[str]) -> None:
    workers = [("a", "v1.34.0"), ("b", "v1.34.0"), ("c", "v1.34.0")]
    result = versions(plane("v1.35.0", "v1.35.0"), *workers, concurrency=concurrency).deployments
    assert result.upgrading == started
    assert result.pending == {"prod-a", "prod-b", "prod-c"} - started
    assert result.versions["a"] == "v1.35.0"


def test_the_next_workers_wait_for_machines_of_the_last() -> None:
    result = versions(plane("v1.35.0", "v1.35.0"), ("a", "v1.35.0"), ("b", "v1.34.0"), upgrading=("a",)).deployments
    assert (result.upgrading, result.pending) == ({"prod-a"}, {"prod-b"})


@pytest.mark.parametrize(
    ("annotation", "deferred", "upgrading"),
    [(DEFER, {"prod-a"}, {"prod-b"}), (HOLD, {"prod-a", "prod-b", "prod-c"}, set())],
)
def test_workers_are_deferred_alone_or_with_all_after_them(
    annotation: str, deferred: set[str], upgrading: set[str]
) -> None:
    workers: list[Any] = [("a", "v1.34.0", {annotation: ""}), ("b", "v1.34.0"), ("c", "v1.34.0")]
    result = versions(plane("v1.35.0", "v1.35.0"), *workers).deployments
    assert (result.deferred, result.upgrading) == (deferred, upgrading)
    assert result.versions["a"] == "v1.34.0"


def test_the_control_plane_waits_where_workers_must_catch_up() -> None:
    allowed = ("v1.31.0", "v1.32.0", "v1.33.0", "v1.34.0", "v1.35.0")
    result = versions(plane("v1.34.0", "v1.34.0"), ("a", "v1.31.0"), allowed=allowed)
    assert result.control_plane.waits_for_workers
    assert result.control_plane.version == "v1.34.0"
    assert result.deployments.versions == {"a": "v1.34.0"}
    assert result.deployments.steps == ("v1.34.0", "v1.35.0")
