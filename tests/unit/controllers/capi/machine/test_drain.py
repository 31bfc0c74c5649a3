"""Draining a node: the treatment and order of its pods, and the messages."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from ironbell.api.cluster.machinedrainrule import MACHINE_DRAIN_RULE, MachineDrainRule
from ironbell.controllers.capi.machine.drain import plan as plans
from ironbell.controllers.capi.machine.drain.pods import NOT_REACHED, Outcome, PodsOfNode, PodView
from ironbell.controllers.capi.machine.drain.treatment import (
    DRAIN,
    SKIP,
    WAIT,
    Behavior,
    DrainError,
    Treatment,
    rules_for_machine,
    treatments,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
POD = PodView("shop", "web-0", "u-web-0", {"app": "web"})
NAMESPACES = {"shop": {"team": "sales"}, "kube-system": {}}


def rule(name: str, behavior: str = "Skip", order: int | None = None, **spec: Any) -> MachineDrainRule:
    drain = {"behavior": behavior} | ({} if order is None else {"order": order})
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"drain": drain, **spec}}
    return MACHINE_DRAIN_RULE.decode(msgspec.json.encode(body))


def treated(pod: PodView, *rules: MachineDrainRule, unreachable: bool = False) -> Treatment:
    node = PodsOfNode((pod,), NAMESPACES)
    return treatments(node, rules, unreachable=unreachable, now=NOW)[0][1]


WEB = {"selector": {"matchLabels": {"app": "web"}}}
SALES = {"namespaceSelector": {"matchLabels": {"team": "sales"}}}
DELETED = NOW - timedelta(seconds=30)


@pytest.mark.parametrize(
    ("pod", "unreachable", "expected"),
    [
        (POD, False, DRAIN),
        (replace(POD, deletion=DELETED), False, DRAIN),
        (replace(POD, deletion=DELETED), True, SKIP),
        (replace(POD, deletion=NOW - timedelta(seconds=1.9)), True, DRAIN),
        (replace(POD, deletion=NOW + timedelta(seconds=30)), True, DRAIN),
        (replace(POD, of_daemon_set=True), False, SKIP),
        (replace(POD, of_daemon_set=True, finished=True), False, DRAIN),
        (replace(POD, mirror=True), False, SKIP),
        (replace(POD, labels={"cluster.x-k8s.io/drain": "skip"}), False, SKIP),
        (replace(POD, labels={"cluster.x-k8s.io/drain": "Skip"}), False, SKIP),
        (replace(POD, labels={"cluster.x-k8s.io/drain": "wait-completed"}), False, WAIT),
        (replace(POD, labels={"cluster.x-k8s.io/drain": "WaitCompleted"}), False, WAIT),
        (replace(POD, labels={"cluster.x-k8s.io/drain": "later"}), False, DRAIN),
        (replace(POD, labels={"cluster.x-k8s.io/drain": "wait-completed"}, of_daemon_set=True), False, SKIP),
    ],
)
def test_filters(pod: PodView, unreachable: bool, expected: Treatment) -> None:
    assert treated(pod, unreachable=unreachable) == expected


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([rule("a")], SKIP),
        ([rule("a", "WaitCompleted")], WAIT),
        ([rule("a", "Drain")], DRAIN),
        ([rule("a", "Drain", 7)], Treatment(Behavior.DRAIN, 7)),
        ([rule("b", "Drain", 7), rule("a", "Drain", -3)], Treatment(Behavior.DRAIN, -3)),
        ([rule("a", pods=[WEB])], SKIP),
        ([rule("a", pods=[SALES])], SKIP),
        ([rule("a", pods=[WEB | SALES])], SKIP),
        ([rule("a", pods=[{"selector": {"matchLabels": {"app": "db"}}}])], DRAIN),
        ([rule("a", pods=[WEB | {"namespaceSelector": {"matchLabels": {"team": "it"}}}])], DRAIN),
        ([rule("a", pods=[{"selector": {"matchLabels": {"app": "db"}}}, WEB])], SKIP),
        ([rule("a", "Drain", 1, pods=[{"selector": {"matchLabels": {"app": "db"}}}]), rule("b")], SKIP),
    ],
)
def test_the_first_rule_that_matches_decides(rules: list[MachineDrainRule], expected: Treatment) -> None:
    concerning = rules_for_machine(rules, machine={}, cluster={})
    assert treated(POD, *concerning) == expected


def test_a_pods_own_label_comes_before_rules() -> None:
    assert treated(replace(POD, labels={"cluster.x-k8s.io/drain": "wait-completed"}), rule("a")) == WAIT


@pytest.mark.parametrize(
    ("machines", "concerned"),
    [
        ([], True),
        ([{"selector": {"matchLabels": {"rack": "1"}}}], True),
        ([{"selector": {"matchLabels": {"rack": "2"}}}], False),
        ([{"selector": {"matchLabels": {"rack": "2"}}}, {"clusterSelector": {"matchLabels": {"env": "prod"}}}], True),
        ([{"selector": {"matchLabels": {"rack": "1"}}, "clusterSelector": {"matchLabels": {"env": "dev"}}}], False),
        ([{}], True),
    ],
)
def test_which_machines_a_rule_concerns(machines: list[Any], concerned: bool) -> None:
    rules = rules_for_machine([rule("a", machines=machines)], machine={"rack": "1"}, cluster={"env": "prod"})
    assert bool(rules) is concerned


def test_the_error_about_undecided_treatments_names_all_pods() -> None:
    pods = (replace(POD, name="b", namespace="lost"), replace(POD, name="a", namespace="lost"), POD)
    with pytest.raises(DrainError, match='Pods with error "Pod Namespace does not exist": lost/a, lost/b'):
        treatments(PodsOfNode(pods, NAMESPACES), (), unreachable=False, now=NOW)
    with pytest.raises(DrainError, match=r'"odd" has unknown spec\.drain\.behavior: "Nap"'):
        treated(POD, rule("odd", "Nap"))
    bad = [{"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]
    with pytest.raises(DrainError, match='invalid selectors in MachineDrainRule bad: "Near"'):
        treated(POD, rule("bad", pods=bad))
    with pytest.raises(DrainError, match="invalid selectors in MachineDrainRule bad"):
        rules_for_machine([rule("bad", machines=bad)], machine={}, cluster={})


def named(name: str, **changes: Any) -> PodView:
    return replace(POD, name=name, uid=f"u-{name}", **changes)


def order(number: int) -> Treatment:
    return Treatment(Behavior.DRAIN, number)


def test_only_pods_of_the_lowest_order_are_evicted() -> None:
    result = plans.plan([(named("a"), order(5)), (named("b"), order(1)), (named("c"), order(1)), (named("d"), SKIP)])
    assert [str(pod) for pod in result.evict] == ["shop/b", "shop/c"]
    assert [str(pod) for pod in result.evict_later] == ["shop/a"]
    assert [str(pod) for pod in result.skipped] == ["shop/d"]
    assert not result.is_done


def test_a_pod_that_is_ending_holds_its_order() -> None:
    result = plans.plan([(named("a", deletion=NOW), order(1)), (named("b"), order(2))])
    assert not result.evict
    assert [str(pod) for pod in result.ending] == ["shop/a"]
    assert [str(pod) for pod in result.evict_later] == ["shop/b"]


def test_waiting_for_the_end_has_order_zero() -> None:
    result = plans.plan([(named("a"), WAIT), (named("b"), order(-1)), (named("c"), order(1))])
    assert [str(pod) for pod in result.evict] == ["shop/b"]
    assert [str(pod) for pod in result.await_end_later] == ["shop/a"]
    after = plans.plan([(named("a"), WAIT), (named("c"), order(1))])
    assert [str(pod) for pod in after.await_end] == ["shop/a"]
    assert not after.evict


def test_nothing_but_skipped_pods_is_the_end() -> None:
    assert plans.plan([(named("a"), SKIP)]).is_done
    assert plans.plan([]).is_done


def rejected(name: str, error: str) -> Outcome:
    return Outcome(f"u-{name}", NOW, error)


def test_message_names_the_pods_and_the_reasons() -> None:
    budget = (
        "Cannot evict pod as it would violate the pod's disruption budget."
        " The disruption budget web needs 2 healthy pods and has 2 currently"
    )
    result = plans.plan(
        [
            (named("e1", deletion=NOW), order(0)),
            *((named(f"p{number}"), order(0)) for number in range(1, 5)),
            (named("q"), order(0)),
            (named("w"), WAIT),
            (named("later"), order(3)),
        ]
    )
    outcomes = [rejected(f"p{number}", budget) for number in range(1, 5)]
    outcomes.append(rejected("q", NOT_REACHED))
    text = plans.message(result, {outcome.uid: outcome for outcome in outcomes}, "2026-01-01T11:00:00Z")
    assert text == "\n".join(
        (
            "Drain not completed yet (started at 2026-01-01T11:00:00Z):",
            "* Pod shop/e1: deletionTimestamp set, but still not removed from the Node",
            f"* Pods shop/p1, shop/p2, shop/p3, ... (1 more): c{budget[1:]}",
            "* Pod shop/q: failed to evict Pod, eviction timeout of 10s reached, eviction will be retried",
            "* Pod shop/w: waiting for completion",
            "After above Pods have been removed from the Node, the following Pods will be evicted: shop/later",
        )
    )


def test_message_names_five_failures_and_counts_the_others() -> None:
    pods = [named(f"p{number}") for number in range(8)]
    result = plans.plan([(pod, order(0)) for pod in pods])
    outcomes = {pod.uid: rejected(pod.name, f"error {pod.name}") for pod in pods}
    lines = plans.message(result, outcomes, "T").splitlines()
    assert len([line for line in lines if "failed to evict Pod, error" in line]) == 5
    assert lines[-1] == "* 3 Pods with other issues"


def test_message_counts_pods_with_accepted_evictions_as_ending() -> None:
    result = plans.plan([(named("a"), order(0)), (named("b"), WAIT), (named("c"), order(0))])
    text = plans.message(result, {"u-a": Outcome("u-a", NOW)}, "T")
    assert "* Pod shop/a: deletionTimestamp set, but still not removed from the Node" in text
    assert "shop/c" not in text
    later = plans.message(plans.plan([(named("a"), order(-1)), (named("b"), WAIT)]), {}, "T")
    assert later.endswith("waiting for the following Pods to complete without eviction: shop/b")
