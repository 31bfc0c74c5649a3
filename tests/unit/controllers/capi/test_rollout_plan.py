"""Rollouts planned: what upstream's planner decides, and that no rollout ever breaks its limits."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from ironbell.controllers.capi.machinedeployment.limits import (
    ON_DELETE,
    ROLLING_UPDATE,
    Limits,
    NoIntOrPercentError,
    limits,
    scaled,
)
from ironbell.controllers.capi.machinedeployment.plan import Count, planned, proportional


def new(spec: int, current: int | None = None, available: int | None = None) -> Count:
    current = spec if current is None else current
    return Count("new", "2026-01-09T00:00:00Z", spec, current, current if available is None else available)


def old(
    spec: int, current: int | None = None, available: int | None = None, *, name: str = "old", day: int = 1
) -> Count:
    current = spec if current is None else current
    return Count(name, f"2026-01-{day:02}T00:00:00Z", spec, current, current if available is None else available)


@pytest.mark.parametrize(
    ("value", "total", "up", "expected"),
    [
        (2, 10, True, 2),
        ("25%", 3, True, 1),
        ("25%", 3, False, 0),
        ("50%", 5, True, 3),
        ("100%", 4, False, 4),
        (None, 3, True, 0),
    ],
)
def test_counts_and_percentages(value: int | str | None, total: int, up: bool, expected: int) -> None:
    assert scaled(value, total, round_up=up) == expected


@pytest.mark.parametrize("value", ["3", "half", "%", "-5%"])
def test_no_percentage(value: str) -> None:
    with pytest.raises(NoIntOrPercentError):
        scaled(value, 3, round_up=True)


def test_neither_surge_nor_unavailability_means_one_missing() -> None:
    assert limits(ROLLING_UPDATE, 3, 0, "10%") == Limits(ROLLING_UPDATE, 3, 0, 1)
    assert limits(ROLLING_UPDATE, 0, 0, 0) == Limits(ROLLING_UPDATE, 0, 0, 0)
    assert limits(ON_DELETE, 3, 1, 1) == Limits(ON_DELETE, 3)


ONE_MORE = limits(ROLLING_UPDATE, 3, 1, 0)
ONE_LESS = limits(ROLLING_UPDATE, 3, 0, 1)


@pytest.mark.parametrize(
    ("bounds", "new_set", "old_sets", "plan"),
    [
        pytest.param(ONE_MORE, new(0), [], {"new": 3}, id="first rollout"),
        pytest.param(ONE_MORE, new(3), [], {}, id="nothing to do"),
        pytest.param(ONE_MORE, new(5), [], {"new": 3}, id="scale down"),
        pytest.param(ONE_MORE, new(0), [old(3)], {"new": 1}, id="surge one"),
        pytest.param(ONE_MORE, new(1, 1, 0), [old(3)], {}, id="wait for the surged one"),
        pytest.param(ONE_MORE, new(1), [old(3)], {"old": 2}, id="old shrinks when new is available"),
        pytest.param(ONE_MORE, new(1), [old(2, 3, 3)], {}, id="the old Machine still exists"),
        pytest.param(ONE_MORE, new(1), [old(2)], {"new": 2}, id="second surge"),
        pytest.param(ONE_LESS, new(0), [old(3)], {"old": 2}, id="no spare host: first the old one shrinks"),
        pytest.param(ONE_LESS, new(0), [old(2, 3, 3)], {}, id="no spare host: wait until it is deleted"),
        pytest.param(ONE_LESS, new(0), [old(2)], {"new": 1}, id="no spare host: then one comes"),
        pytest.param(ONE_LESS, new(1, 1, 0), [old(2)], {}, id="no spare host: wait until it is available"),
        pytest.param(ONE_MORE, new(1), [old(3, 3, 2)], {"old": 2}, id="deadlock of an unavailable old one"),
        pytest.param(ONE_MORE, new(1, 1, 0), [old(3, 3, 2)], {}, id="no deadlock breaking while new is not well"),
        pytest.param(
            limits(ROLLING_UPDATE, 4, 1, 2),
            new(2),
            [old(2, day=2, name="b"), old(1, 1, 0, name="a")],
            {"a": 0, "b": 0},
            id="oldest and unavailable first, within what may be missing",
        ),
        pytest.param(ONE_MORE, new(3), [old(3)], {"old": 0}, id="all new are available"),
    ],
)
def test_rolling_update(bounds: Limits, new_set: Count, old_sets: list[Count], plan: dict[str, int]) -> None:
    assert planned(bounds, new_set, old_sets) == plan


@pytest.mark.parametrize(
    ("new_set", "old_sets", "plan"),
    [
        pytest.param(new(0), [old(3)], {}, id="nothing happens by itself"),
        pytest.param(new(0), [old(3, 2)], {"old": 2}, id="who deletes a Machine is not given the old one again"),
        pytest.param(new(0), [old(2)], {"new": 1}, id="but a new one"),
        pytest.param(
            new(1), [old(2), old(2, name="older", day=1)], {"old": 0}, id="surplus is deleted, by age and name"
        ),
    ],
)
def test_on_delete(new_set: Count, old_sets: list[Count], plan: dict[str, int]) -> None:
    assert planned(limits(ON_DELETE, 3, None, None), new_set, old_sets) == plan


@pytest.mark.parametrize(
    ("replicas", "sets", "plan"),
    [
        pytest.param(10, [(old(5), 6), (new(1), 6)], {"old": 9, "new": 2}, id="up, in proportion"),
        pytest.param(3, [(old(5), 6), (new(1), 6)], {"old": 3}, id="down"),
        pytest.param(0, [(old(5), 6), (new(1), 6)], {"old": 0, "new": 0}, id="to nothing"),
        pytest.param(5, [(old(5), 6), (new(1), 6)], {}, id="no change"),
    ],
)
def test_a_paused_rollout_scales_in_proportion(
    replicas: int, sets: list[tuple[Count, int]], plan: dict[str, int]
) -> None:
    assert proportional(limits(ROLLING_UPDATE, replicas, 1, 0), sets, 6) == plan


@dataclass
class Fleet:
    """MachineSets and Machines that do what real ones may do, in any order."""

    bounds: Limits
    dice: random.Random
    spec: dict[str, int]
    machines: dict[str, list[bool]] = field(default_factory=dict)
    """Per set, whether each Machine is available."""
    reported: dict[str, tuple[int, int]] = field(default_factory=dict)

    def count(self, name: str) -> Count:
        current, available = self.reported.get(name, (0, 0))
        return Count(
            name,
            {"old": "2026-01-01", "older": "2025-01-01"}.get(name, "2026-02-01"),
            self.spec[name],
            current,
            available,
        )

    def total(self) -> int:
        return sum(len(machines) for machines in self.machines.values())

    def available(self) -> int:
        return sum(sum(machines) for machines in self.machines.values())

    def report(self, name: str) -> None:
        machines = self.machines.setdefault(name, [])
        self.reported[name] = (len(machines), sum(machines))

    def step(self) -> None:
        """One MachineSet does one thing; at worst it deletes what is available first."""
        name = self.dice.choice(list(self.spec))
        machines = self.machines.setdefault(name, [])
        if len(machines) < self.spec[name]:
            machines.append(False)
        elif len(machines) > self.spec[name]:
            machines.remove(self.dice.choice(machines))
        elif False in machines and self.dice.random() < 0.7:
            machines[machines.index(False)] = True
        self.report(name)


@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (0, 1), (2, 1), ("30%", "20%"), (0, "50%")])
def test_no_rollout_breaks_its_limits(surge: int | str, unavailable: int | str) -> None:
    for seed in range(60):
        dice = random.Random(seed)
        bounds = limits(ROLLING_UPDATE, dice.randint(1, 7), surge, unavailable)
        previous = dice.randint(0, bounds.replicas)
        fleet = Fleet(bounds, dice, {"old": previous, "older": bounds.replicas - previous, "new": 0})
        for name in ("old", "older"):
            fleet.machines[name] = [True] * fleet.spec[name]
            fleet.report(name)
        for _ in range(3000):
            plan = planned(bounds, fleet.count("new"), [fleet.count("old"), fleet.count("older")])
            fleet.spec |= plan
            fleet.step()
            assert fleet.total() <= bounds.replicas + bounds.max_surge, (seed, fleet)
            assert fleet.available() >= bounds.min_available, (seed, fleet)
            if fleet.spec == {"old": 0, "older": 0, "new": bounds.replicas} and fleet.available() == fleet.total():
                break
        assert fleet.spec == {"old": 0, "older": 0, "new": bounds.replicas}, (seed, fleet)
