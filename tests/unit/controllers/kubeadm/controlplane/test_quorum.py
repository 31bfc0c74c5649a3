"""Whether a step leaves a quorum of etcd and a whole control plane."""

from __future__ import annotations

import itertools

import pytest

from ironbell.controllers.kubeadm.controlplane.machines.quorum import components_survive, etcd_forecast
from ironbell.workload.etcd import Alarm, AlarmType, Member

A, B, C, D, E = (Member(number, name) for number, name in enumerate("abcde", 1))
NAMELESS, LEARNER = Member(8), Member(9, "l", is_learner=True)


@pytest.mark.parametrize(
    ("members", "sick", "without", "adding", "safe"),
    [
        ((A,), "", "", True, True),
        ((A, B), "", "", True, True),
        ((A, B), "b", "", True, False),
        ((A, B, C), "", "", True, True),
        ((A, B, C), "c", "", True, False),
        ((A, B, C), "", "c", False, True),
        ((A, B, C), "c", "c", False, True),
        ((A, B, C), "b", "c", False, False),
        ((A, B, C, D, E), "ab", "a", False, True),
        ((A, B, C, D, E), "abc", "a", False, False),
        ((A, B, C, D, E), "ab", "c", False, False),
        ((A,), "a", "a", False, False),
        ((A, B, NAMELESS), "", "a", False, False),
        ((A, B, C, LEARNER), "", "a", False, False),
        ((A, B, C, LEARNER), "", "l", False, True),
    ],
)
def test_steps_that_keep_a_quorum_are_safe(
    members: tuple[Member, ...], sick: str, without: str, adding: bool, safe: bool
) -> None:
    health = {member.name: member.name not in sick for member in members if member.name}
    assert etcd_forecast(members, (), health, without=without, adding=adding).safe is safe


def test_a_member_without_machine_counts_as_healthy_unless_it_has_an_alarm() -> None:
    health = {"a": True, "b": True}
    assert etcd_forecast((A, B, C), (), health, without="a").safe
    assert not etcd_forecast((A, B, C), (Alarm(3, AlarmType.NOSPACE),), health, without="a").safe
    assert etcd_forecast((A, B, C), (Alarm(3, AlarmType.NONE),), health, without="a").safe


def test_what_is_called_safe_leaves_a_majority_of_healthy_voters() -> None:
    everybody = (A, B, C, D, E)
    for size, sick in itertools.product(range(1, 6), range(32)):
        members = everybody[:size]
        health = {member.name: not sick >> index & 1 for index, member in enumerate(members)}
        for gone in members:
            if etcd_forecast(members, (), health, without=gone.name).safe:
                left = [member for member in members if member is not gone]
                assert sum(health[member.name] for member in left) > len(left) / 2


def test_a_whole_control_plane_must_be_left() -> None:
    assert components_survive(["m1", "m2"], without="m1")
    assert not components_survive(["m1"], without="m1")
    assert not components_survive([])
