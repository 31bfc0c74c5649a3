"""What moves, what stays as well, in which order; and what speaks against it."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.operations.pivot import checks
from ironbell.operations.pivot.checks import PivotRejectedError
from ironbell.operations.pivot.graph import GraphError, Plan, Selection, plan
from ironbell.operations.pivot.items import CONFIG_MAPS, SECRETS, Item, MovedKind, moved_kinds

CORE, INFRA = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"
ADDONS, TINK, BMC = "addons.cluster.x-k8s.io", "tinkerbell.org", "bmc.tinkerbell.org"


def kind(name: str, group: str, **more: Any) -> MovedKind:
    return MovedKind(group, "v1", name, f"{name.lower()}s", has_status=True, **more)


CLUSTER = kind("Cluster", CORE, forced=True, hierarchy=True)
CLASS = kind("ClusterClass", CORE, forced=True, hierarchy=True)
MACHINE = kind("Machine", CORE)
TEMPLATE = kind("DevMachineTemplate", INFRA)
INFRA_MACHINE = kind("TinkerbellMachine", INFRA)
SET = kind("ClusterResourceSet", ADDONS, forced=True, hierarchy=True)
BINDING = kind("ClusterResourceSetBinding", ADDONS)
HARDWARE = kind("Hardware", TINK, forced=True)
BMC_MACHINE = kind("Machine", BMC, forced=True)
IDENTITY = kind("Identity", INFRA, forced=True, hierarchy=True, namespaced=False)
ALL = Selection(frozenset(["n"]))


def one(
    of: MovedKind, name: str, *owners: Item, namespace: str = "n", labels: dict[str, str] | None = None, **body: Any
) -> Item:
    meta: dict[str, Any] = {"name": name, "uid": f"{of.name}/{namespace}/{name}", "labels": labels or {}}
    if of.namespaced:
        meta["namespace"] = namespace
    meta["ownerReferences"] = [{"kind": owner.kind.kind, "name": owner.name, "uid": owner.uid} for owner in owners]
    meta |= body.pop("meta", {})
    return Item(of, {"metadata": meta, **body})


def cluster(name: str, uses: str = "", **more: Any) -> Item:
    started = {"infrastructureProvisioned": True, "controlPlaneInitialized": True}
    spec = {"topology": {"classRef": {"name": uses, "namespace": "shared"}}} if uses else {}
    return one(CLUSTER, name, spec=spec, status={"initialization": started}, **more)


def titles(found: Plan) -> list[list[str]]:
    return [[f"{item.kind.kind} {item.name}" for item in group] for group in found.groups]


def kept(found: Plan) -> set[str]:
    return {item.name for item in found.items if item.uid in found.kept}


def test_owners_come_before_what_they_own_and_strangers_stay() -> None:
    first = cluster("one")
    machine = one(MACHINE, "m", first)
    found = plan(
        [
            one(SECRETS, "m-data", machine), machine, first, one(SECRETS, "one-kubeconfig"), one(SECRETS, "other"),
            one(SECRETS, "two-ca"), one(CONFIG_MAPS, "cm"), one(SECRETS, "labelled", labels={
                "clusterctl.cluster.x-k8s.io/move": ""}), one(MACHINE, "alone"), cluster("elsewhere", namespace="o"),
        ], ALL,
    )  # fmt: skip
    assert titles(found) == [
        ["Cluster one", "Secret labelled"],
        ["Machine m", "Secret one-kubeconfig"],
        ["Secret m-data"],
    ]
    assert not found.kept
    assert found.paused == {first.uid}


def test_a_class_that_others_use_stays_with_its_templates() -> None:
    shared = one(CLASS, "c", namespace="shared")
    template = one(TEMPLATE, "t", shared, namespace="shared")
    items = [shared, template, cluster("one", "c"), cluster("two", "c")]
    whole = plan(items, Selection())
    assert titles(whole)[0] == ["ClusterClass c"]
    assert not whole.kept
    for wanted in (ALL, Selection(clusters=frozenset(["one"]))):
        assert kept(plan(items, wanted)) == {"c", "t"}


def test_a_resource_set_stays_while_another_cluster_has_it() -> None:
    resources = one(SET, "cni")
    items = [
        cluster("one"), cluster("two"), resources, one(CONFIG_MAPS, "cni", resources),
        one(BINDING, "one", resources, spec={"clusterName": "one"}),
        one(BINDING, "two", resources, spec={"clusterName": "two"}),
    ]  # fmt: skip
    found = plan(items, Selection(frozenset(["n"]), frozenset(["one"])))
    assert {item.kind.kind for item in found.items} == {"Cluster", "ClusterResourceSet", "ConfigMap", BINDING.kind}
    assert [(item.kind.kind, item.name) for item in found.items if item.uid in found.kept] == [
        ("ClusterResourceSet", "cni"),
        ("ConfigMap", "cni"),
    ]
    assert not plan(items, ALL).kept


def test_claimed_hardware_goes_with_its_machine_its_bmc_and_that_ones_secret() -> None:
    first = cluster("one")
    host = one(INFRA_MACHINE, "h", one(MACHINE, "m", first))
    claim = {"v1alpha1.tinkerbell.org/ownerName": "h", "v1alpha1.tinkerbell.org/ownerNamespace": "n"}
    secret = {"name": "bmc", "namespace": "bmcs"}
    items = [
        first, one(MACHINE, "m", first), host, one(HARDWARE, "free", namespace="metal"),
        one(HARDWARE, "hw", namespace="metal", labels=claim, spec={"bmcRef": {"name": "hw"}}),
        one(BMC_MACHINE, "hw", namespace="metal", spec={"connection": {"authSecretRef": secret}}),
        one(SECRETS, "bmc", namespace="bmcs"), one(SECRETS, "bmc"),
    ]  # fmt: skip
    found = plan(items, Selection(frozenset(["n"]), frozenset(["one"])))
    assert titles(found)[3:] == [["Hardware hw"], ["Machine hw"], ["Secret bmc"]]
    assert [item.namespace for item in found.items if item.kind is SECRETS] == ["bmcs"]
    assert [item.kind for item in found.items if item.uid in found.paused] == [CLUSTER, HARDWARE, BMC_MACHINE]
    metal = plan(items, Selection(frozenset(["metal"])))
    assert "belongs to TinkerbellMachine.infrastructure.cluster.x-k8s.io n/h" in next(checks.torn(metal))
    assert not list(checks.torn(found))


def test_what_has_no_namespace_is_copied_and_stays() -> None:
    identity = one(IDENTITY, "i")
    found = plan([identity, one(SECRETS, "s", identity), cluster("one")], ALL)
    assert kept(found) == {"i", "s"}


def test_owners_in_a_circle_are_named() -> None:
    first = cluster("one")
    ring = one(MACHINE, "a", first, meta={"ownerReferences": [{"uid": first.uid}, {"uid": f"{MACHINE.name}/n/b"}]})
    with pytest.raises(GraphError, match=r"circle: Machine\.cluster\.x-k8s\.io n/a, .* n/b"):
        plan([first, ring, one(MACHINE, "b", ring)], ALL)


def test_the_label_of_clusterctl_says_what_moves() -> None:
    def definition(name: str, **labels: str) -> dict[str, Any]:
        versions = [
            {"name": "v1", "storage": False, "served": True},
            {"name": "v2", "storage": True, "served": True, "subresources": {"status": {}}},
        ]
        names = {"kind": name, "plural": f"{name.lower()}s"}
        spec = {"group": CORE, "names": names, "scope": "Namespaced", "versions": versions}
        return {"metadata": {"labels": {name.replace("_", "/"): value for name, value in labels.items()}}, "spec": spec}

    mark = {"clusterctl.cluster.x-k8s.io": ""}
    found = moved_kinds(
        [definition("Cluster", **mark), definition("Machine", **mark), definition("Other"),
         definition("Pool", **mark, **{"clusterctl.cluster.x-k8s.io_move": ""})]
    )  # fmt: skip
    assert [(each.kind, each.version, each.forced, each.hierarchy) for each in found] == [
        ("Cluster", "v2", True, True), ("Machine", "v2", False, False), ("Pool", "v2", True, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (
            cluster("one", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            "is being deleted; wait until it no longer exists",
        ),
        (one(CLUSTER, "one"), "its infrastructure is not provisioned yet"),
        (one(CLUSTER, "one", status={"initialization": {"infrastructureProvisioned": True}}), "is not initialised yet"),
    ],
)
def test_what_is_unfinished_is_named(item: Item, why: str) -> None:
    with pytest.raises(PivotRejectedError, match=why):
        checks.raise_problems(checks.unfinished(plan([item], ALL)))


def test_a_machine_without_its_node_is_waited_for() -> None:
    first = cluster("one")
    found = plan([first, one(MACHINE, "m", first)], ALL)
    assert list(checks.unfinished(found)) == [
        "Machine.cluster.x-k8s.io n/m has no Node yet; wait for it, or delete the Machine"
    ]


def test_a_target_without_the_kind_or_its_version_is_named() -> None:
    first = cluster("one")
    found = plan([first, one(MACHINE, "m", first)], ALL)
    missing, older = sorted(checks.unserved(found, {CLUSTER.name: {"v1beta1"}}))
    assert missing == "the target has no kind Machine.cluster.x-k8s.io; install its provider there"
    assert "serves Cluster.cluster.x-k8s.io as v1beta1 and not as v1, in which the source stores it; install" in older


def test_strangers_of_the_same_name_are_named_unless_they_are_shared_and_the_same() -> None:
    shared = one(CLASS, "c", namespace="shared", spec={"a": 1})
    found = plan([shared, cluster("one", "c")], ALL)
    same, other = one(CLASS, "c", namespace="shared", spec={"a": 1}), one(CLASS, "c", namespace="shared", spec={"a": 2})
    assert not list(checks.strangers(found, {same.key: same}, "p"))
    assert "is already on the target" in next(checks.strangers(found, {other.key: other}, "p"))
    theirs = cluster("one", labels={"ironbell.dev/pivot": "another"})
    assert "is not a copy of this pivot" in next(checks.strangers(found, {theirs.key: theirs}, "p"))
    ours = cluster("one", labels={"ironbell.dev/pivot": "p"})
    assert not list(checks.strangers(found, {ours.key: ours}, "p"))


def test_of_a_clusterctl_move_only_what_is_paused_is_taken() -> None:
    move = {"deletionTimestamp": "t", "annotations": {"clusterctl.cluster.x-k8s.io/delete-for-move": ""}}
    found = plan([cluster("one", meta=move)], ALL)
    assert not list(checks.unfinished(found, adopts=True))
    runs, paused = one(CLUSTER, "one"), one(CLUSTER, "one", spec={"paused": True})
    assert "is not paused on the target" in next(checks.strangers(found, {runs.key: runs}, "p", adopts=True))
    assert not list(checks.strangers(found, {paused.key: paused}, "p", adopts=True))


def test_of_a_clusterctl_move_servers_are_taken_that_say_the_same() -> None:
    """clusterctl pauses no Hardware."""
    server = one(HARDWARE, "spare", spec={"a": 1})
    found = plan([server], ALL)
    assert server.uid in found.paused
    same, other = one(HARDWARE, "spare", spec={"a": 1, "more": 2}), one(HARDWARE, "spare", spec={"a": 2})
    assert not list(checks.strangers(found, {same.key: same}, "p", adopts=True))
    assert "is not paused on the target" in next(checks.strangers(found, {other.key: other}, "p", adopts=True))


def test_providers_that_are_older_there_are_named() -> None:
    def provider(version: str) -> dict[str, str]:
        return {"type": "CoreProvider", "providerName": "cluster-api", "version": version}

    assert list(checks.outdated([provider("v1.14.2")], [provider("v1.9.10")])) == [
        "CoreProvider cluster-api is v1.14.2 on the source and only 1.9.10 on the target; upgrade it there"
    ]
    assert not list(checks.outdated([provider("v1.14.2")], [provider("v1.14.2"), provider("v1.2.0")]))
    assert not list(checks.outdated([provider("v1.14.2")], []))


def test_work_on_hardware_that_moves_is_waited_for() -> None:
    found = plan([one(HARDWARE, "hw"), one(BMC_MACHINE, "bmc")], ALL)
    meta = {"namespace": "n", "name": "w"}
    runs = {"metadata": meta, "spec": {"hardwareRef": "hw"}, "status": {"state": "RUNNING"}}
    ended = {**runs, "status": {"state": "SUCCESS"}}
    job = {"metadata": meta, "spec": {"machineRef": {"name": "bmc", "namespace": "n"}}}
    done = {**job, "status": {"conditions": [{"type": "Completed", "status": "True"}]}}
    assert len(list(checks.running(found, [runs, ended], [job, done]))) == 2
    assert not list(checks.running(plan([cluster("one")], ALL), [runs], [job]))


def test_of_many_problems_the_first_are_named() -> None:
    with pytest.raises(PivotRejectedError, match="\n  and 5 more") as refused:
        checks.raise_problems(f"problem {number}" for number in range(25))
    assert refused.value.details == {"problems": [f"problem {number}" for number in range(25)]}, "with -o json all"
