"""ClusterResourceSets: manifests reach the clusters they are for, once or again, and bindings remember it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
import pytest

from ironbell.api.addons import CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING
from ironbell.api.addons.clusterresourceset import ClusterResourceSet
from ironbell.api.addons.clusterresourcesetbinding import ResourceBinding, ResourceSetBinding
from ironbell.api.client import Api
from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.core import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, NAMESPACE, SECRET
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.unstructured import dynamic_kind
from ironbell.base.clock import ManualClock
from ironbell.controllers.capi.clusterresourceset.applier import (
    APPLY,
    Applier,
    ApplyArguments,
    Pending,
    Reader,
    encoded,
    with_outcome,
)
from ironbell.controllers.capi.clusterresourceset.applying import ResourceApplyingReconciler
from ironbell.controllers.capi.clusterresourceset.reconciler import ClusterResourceSetReconciler
from ironbell.controllers.capi.clusterresourceset.sources import ContentHash
from ironbell.kube.client import Client
from ironbell.kube.decision import Action, Emit, MergePatch
from ironbell.kube.testing import MemoryApi
from ironbell.kube.testing.crash import crash_check
from ironbell.kube.testing.world import World, drive
from ironbell.workload.access import NotConnected
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.kinds import UnknownKindError, locate, plural_of
from ironbell.workload.queries import Connection, ConnectionState

V = TypeVar("V")
APPLYING, SETS = ResourceApplyingReconciler(), ClusterResourceSetReconciler()
BOTH = (APPLYING, SETS)
CNI = dynamic_kind("cni.example.com", "v1", "Network", "networks", namespaced=False)
SET_TYPE = "addons.cluster.x-k8s.io/resource-set"


@dataclass
class Remotes:
    """The applied resources by cluster."""

    applied: list[tuple[str, str, str]] = field(default_factory=list)
    failing: bool = False


def apply_(world: World, arguments: ApplyArguments) -> list[Action]:
    """Stands in for `Applier`: notes what is applied, and remembers the content's hash."""
    remotes: Remotes = world.outside
    bindings = msgspec.json.decode(arguments.bindings, type=list[ResourceSetBinding])
    for pending in arguments.pending:
        remotes.applied.append((arguments.cluster.name, pending.set_name, pending.name))
        body = world.api.objects[CONFIG_MAP.collection]["default", pending.name]
        outcome = ResourceBinding(
            name=pending.name,
            kind=pending.kind,
            hash=str(body.get("data")),
            applied=not remotes.failing,
            last_applied_time=world.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        bindings = with_outcome(bindings, pending.set_name, outcome)
    change = {"spec": {"bindings": msgspec.to_builtins(bindings)}}
    version = arguments.binding_version
    return [MergePatch(CLUSTER_RESOURCE_SET_BINDING, *arguments.cluster.key, change, resource_version=version)]


def hash_(world: World, query: ContentHash) -> str:
    return str(world.api.objects[CONFIG_MAP.collection][query.namespace, query.name].get("data"))


def scene(
    *, strategy: str = "ApplyOnce", clusters: int = 1, connected: bool = True
) -> tuple[World, ClusterResourceSet]:
    world = World(
        outside=Remotes(),
        performers={APPLY: apply_},
        resolvers={Connection: lambda _world, _query: ConnectionState(connected=connected), ContentHash: hash_},
    )
    world.api.serve([CLUSTER, CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING, CONFIG_MAP, SECRET_METADATA])
    for number in range(clusters):
        add_cluster(world, f"c{number}")
    world.add(CONFIG_MAP, {"metadata": {"name": "cni", "namespace": "default"}, "data": {"a": "1"}})
    return world, add_set(world, strategy=strategy)


def add_cluster(world: World, name: str, **labels: str) -> Cluster:
    metadata = {"name": name, "namespace": "default", "labels": {"cni": "x", **labels}}
    status = {"initialization": {"controlPlaneInitialized": True}}
    return world.add(CLUSTER, {"metadata": metadata, "spec": {}, "status": status})


def add_set(
    world: World, name: str = "cni", *, strategy: str = "ApplyOnce", kind: str = "ConfigMap"
) -> ClusterResourceSet:
    spec = {
        "clusterSelector": {"matchLabels": {"cni": "x"}},
        "resources": [{"name": "cni", "kind": kind}],
        "strategy": strategy,
    }
    return world.add(CLUSTER_RESOURCE_SET, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def reported(world: World, resource_set: ClusterResourceSet) -> tuple[str, str, str]:
    conditions = world.require(CLUSTER_RESOURCE_SET, *resource_set.key).status.conditions
    result = next(condition for condition in conditions if condition.type == "ResourcesApplied")
    return (result.status, result.reason, result.message)


def rewrite(world: World) -> None:
    result = world.require(CONFIG_MAP, "default", "cni")
    world.change(CONFIG_MAP, result, {"data": {"a": "2"}})


def test_resources_are_applied_in_every_cluster_and_remembered() -> None:
    world, resource_set = scene(clusters=2)

    world.settle(*BOTH, horizon_s=5)

    assert world.outside.applied == [("c0", "cni", "cni"), ("c1", "cni", "cni")]
    binding = world.require(CLUSTER_RESOURCE_SET_BINDING, "default", "c0")
    assert binding.spec.cluster_name == "c0"
    assert [(b.cluster_resource_set_name, b.resources[0].applied) for b in binding.spec.bindings] == [("cni", True)]
    assert [owner.name for owner in binding.metadata.owner_references] == ["cni"]
    assert reported(world, resource_set) == ("True", "Applied", "")
    source = world.require(CONFIG_MAP, "default", "cni")
    assert [owner.kind for owner in source.metadata.owner_references] == ["ClusterResourceSet"]


@pytest.mark.parametrize(("strategy", "times"), [("ApplyOnce", 1), ("Reconcile", 2)])
def test_changed_content_is_applied_again_with_the_strategy_reconcile(strategy: str, times: int) -> None:
    world, _ = scene(strategy=strategy)
    world.settle(*BOTH, horizon_s=5)
    rewrite(world)

    world.settle(*BOTH, horizon_s=5)

    assert len(world.outside.applied) == times


def test_a_failed_resource_is_reported_and_retried_later() -> None:
    world, resource_set = scene()
    world.outside.failing = True
    world.settle(*BOTH, horizon_s=40)
    assert 2 <= len(world.outside.applied) <= 4
    expected = "Failed to apply ClusterResourceSet resources to Cluster c0"
    assert reported(world, resource_set) == ("False", "NotApplied", expected)

    world.outside.failing = False
    world.settle(*BOTH, horizon_s=40)

    assert reported(world, resource_set)[0] == "True"


def test_a_cluster_that_cannot_be_reached_is_waited_for() -> None:
    world, resource_set = scene(connected=False)

    world.settle(*BOTH)

    assert world.outside.applied == []
    expected = "ClusterResourceSet resources are not applied to Cluster c0 yet"
    assert reported(world, resource_set) == ("False", "NotApplied", expected)


def test_a_missing_resource_and_a_secret_of_another_type_are_reported() -> None:
    world, resource_set = scene()
    world.remove(CONFIG_MAP, world.require(CONFIG_MAP, "default", "cni"))
    world.settle(*BOTH)
    assert reported(world, resource_set) == ("False", "InternalError", "ConfigMap cni not found")

    world.remove(CLUSTER_RESOURCE_SET, resource_set)
    world.settle(*BOTH)
    secret = add_set(world, "secret", kind="Secret")
    world.add(SECRET_METADATA, {"metadata": {"name": "cni", "namespace": "default"}, "type": "Opaque"})
    world.settle(*BOTH)

    assert reported(world, secret) == ("False", "WrongSecretType", "Secret type of resource cni is not supported")
    assert world.outside.applied == []


def test_a_deleted_set_leaves_the_bindings_of_others() -> None:
    world, resource_set = scene()
    other = add_set(world, "other")
    world.settle(*BOTH, horizon_s=5)
    world.remove(CLUSTER_RESOURCE_SET, resource_set)
    world.settle(*BOTH, horizon_s=5)
    binding = world.require(CLUSTER_RESOURCE_SET_BINDING, "default", "c0")
    assert [entry.cluster_resource_set_name for entry in binding.spec.bindings] == ["other"]
    assert [owner.name for owner in binding.metadata.owner_references] == ["other"]

    world.remove(CLUSTER_RESOURCE_SET, world.require(CLUSTER_RESOURCE_SET, *other.key))
    world.settle(*BOTH, horizon_s=5)

    assert world.list(CLUSTER_RESOURCE_SET) == world.list(CLUSTER_RESOURCE_SET_BINDING) == []


def test_a_set_of_no_cluster_is_deleted_even_if_others_have_no_binding() -> None:
    world, resource_set = scene(connected=False)
    world.settle(*BOTH)
    world.remove(CLUSTER_RESOURCE_SET, world.require(CLUSTER_RESOURCE_SET, *resource_set.key))

    world.settle(*BOTH)

    assert world.list(CLUSTER_RESOURCE_SET) == []


def test_a_binding_is_deleted_with_its_cluster() -> None:
    world, _ = scene()
    world.settle(*BOTH, horizon_s=5)
    world.remove(CLUSTER, world.require(CLUSTER, "default", "c0"))

    decision = world.decide(APPLYING, ("default", "c0"))
    assert decision is not None
    world.act(APPLYING, decision.actions)

    assert world.list(CLUSTER_RESOURCE_SET_BINDING) == []


def test_a_binding_that_outlived_its_cluster_is_not_used_for_a_new_cluster_of_the_same_name() -> None:
    world, _ = scene()
    world.settle(*BOTH, horizon_s=5)
    previous = len(world.outside.applied)
    cluster = world.require(CLUSTER, "default", "c0")
    world.remove(CLUSTER, cluster)
    world.clock.advance(5)
    add_cluster(world, "c0")

    world.settle(*BOTH, horizon_s=5)

    assert len(world.outside.applied) == previous + 1
    binding = world.require(CLUSTER_RESOURCE_SET_BINDING, "default", "c0")
    assert [entry.resources[0].applied for entry in binding.spec.bindings] == [True]


def test_a_paused_set_applies_nothing() -> None:
    world, resource_set = scene()
    world.change(CLUSTER_RESOURCE_SET, resource_set, {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}})

    world.settle(*BOTH)

    assert world.outside.applied == []
    conditions = world.require(CLUSTER_RESOURCE_SET, *resource_set.key).status.conditions
    assert [(c.type, c.status) for c in conditions] == [("Paused", "True")]


def test_a_crash_at_any_point_ends_the_same() -> None:
    world, _ = scene()

    crash_check(BOTH, world, horizon_s=5)


def site() -> MemoryApi:
    api = MemoryApi(clock=ManualClock())
    api.serve([CONFIG_MAP, SECRET, NAMESPACE, CUSTOM_RESOURCE_DEFINITION, CNI])
    return api


def manifest(kind: str, name: str, api_version: str = "v1", **more: Any) -> str:
    return msgspec.json.encode({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}).decode()


def run(coroutine: Coroutine[Any, Any, V]) -> V:
    return asyncio.run(coroutine)


async def applied(remote: MemoryApi | None, strategy: str, kind: str, text: str) -> list[Action]:
    home = site()
    data = base64.b64encode(text.encode()).decode() if kind == "Secret" else text
    where = SECRET if kind == "Secret" else CONFIG_MAP
    metadata = {"name": "cni", "namespace": "default"}
    await Client(home).create(where, {"metadata": metadata, "data": {"all": data}, "type": SET_TYPE})

    async def api_of(cluster: ClusterKey) -> Api:
        if remote is None:
            raise NotConnected(cluster)
        return remote

    applier = Applier(Reader(home), api_of, ManualClock())
    pending = (Pending("cni", strategy, kind, "cni"),)
    return list(await applier(ApplyArguments(ClusterKey("default", "c0", "uid"), "5", encoded([]), pending)))


def outcome(actions: list[Action]) -> dict[str, Any]:
    assert isinstance(actions[0], MergePatch)
    assert actions[0].resource_version == "5"
    result: dict[str, Any] = actions[0].body["spec"]["bindings"][0]["resources"][0]
    return result


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_objects_are_created_in_the_cluster_with_their_dependencies(kind: str) -> None:
    remote = site()
    names = {"kind": "Network", "plural": "networks"}
    definition = manifest(
        "CustomResourceDefinition",
        "networks.cni.example.com",
        "apiextensions.k8s.io/v1",
        spec={"group": "cni.example.com", "names": names, "scope": "Cluster"},
    )
    texts = [manifest("Network", "pods", "cni.example.com/v1"), manifest("ConfigMap", "config"), definition]

    actions = run(applied(remote, "ApplyOnce", kind, "\n---\n".join(texts)))

    assert outcome(actions)["applied"] is True
    assert outcome(actions)["hash"].startswith("sha256:")
    assert len(actions) == 1
    assert list(remote.objects[CNI.collection]) == [("", "pods")]
    assert list(remote.objects[CONFIG_MAP.collection]) == [("default", "config")]


@pytest.mark.parametrize(("strategy", "expected"), [("ApplyOnce", "theirs"), ("Reconcile", "ours")])
def test_existing_objects_are_left_or_updated(strategy: str, expected: str) -> None:
    remote = site()
    body = {"metadata": {"name": "config", "namespace": "default"}, "data": {"who": "theirs"}}
    drive(Client(remote).create(CONFIG_MAP, body))

    actions = run(applied(remote, strategy, "ConfigMap", manifest("ConfigMap", "config", data={"who": "ours"})))

    assert outcome(actions)["applied"] is True
    assert remote.objects[CONFIG_MAP.collection]["default", "config"]["data"] == {"who": expected}


def test_failures_are_reported_without_content_and_other_objects_are_applied() -> None:
    remote = site()
    texts = [manifest("Unheard", "x", "no.example.com/v1", token="hunter2"), manifest("ConfigMap", "config")]

    actions = run(applied(remote, "ApplyOnce", "Secret", "\n---\n".join(texts)))

    assert outcome(actions)["applied"] is False
    event = actions[1]
    assert isinstance(event, Emit)
    assert event.message == "Could not apply Secret cni: Unheard x: UnknownKind"
    assert list(remote.objects[CONFIG_MAP.collection]) == [("default", "config")]


def test_without_a_connection_nothing_is_remembered() -> None:
    with pytest.raises(NotConnected):
        run(applied(None, "ApplyOnce", "ConfigMap", manifest("ConfigMap", "config")))


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Endpoints", "endpoints"),
        ("NetworkPolicy", "networkpolicies"),
        ("IngressClass", "ingressclasses"),
        ("StorageClass", "storageclasses"),
        ("DaemonSet", "daemonsets"),
    ],
)
def test_plurals_of_kubernetes_own_kinds(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural


def test_where_kinds_live() -> None:
    assert locate("v1", "Namespace").namespaced is False
    assert (
        locate("apps/v1", "DaemonSet").path("kube-system", "x") == "/apis/apps/v1/namespaces/kube-system/daemonsets/x"
    )
    with pytest.raises(UnknownKindError):
        locate("cilium.io/v2", "CiliumNode")
