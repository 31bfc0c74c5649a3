"""Manifests say what the code needs, and no more."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.access.roles import Role
from ironbell.apiserver.core import ApiServer
from ironbell.app.components import (
    COMPONENTS,
    UnknownComponentError,
    components_named,
    members,
    rules_of,
)
from ironbell.app.install.manifests import manifests
from ironbell.app.install.options import InstallOptions
from ironbell.app.install.policies import policies
from ironbell.app.install.resources import COLLECTIONS
from ironbell.app.roles import BOOT_ROLE, WORKFLOW_ROLE
from ironbell.app.run.controllers import controller_names
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from ironbell.contract.system import Runtime
from ironbell.kube.manager.manager import Manager
from ironbell.kube.testing import MemoryApi

OF_PROVIDERS = {
    ("infrastructure.cluster.x-k8s.io", "*"),
    ("bootstrap.cluster.x-k8s.io", "*"),
    ("controlplane.cluster.x-k8s.io", "*"),
}
"""Objects of kinds that only a user knows."""


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {document["metadata"]["name"]: document for document in objects if document["kind"] == kind}


def allowed(rules: Any) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


async def test_what_controllers_watch_is_what_their_component_may_read() -> None:
    for component in members("controllers"):
        api, clock, randomness = MemoryApi(), ManualClock(), SeededRandomness(1)
        manager = Manager(api, clock=clock, randomness=randomness)
        kinds = set()
        runtime = Runtime(api, lambda _name: None, clock, randomness, manager.informers)
        for controller in component.system.controllers.load()(runtime):
            reconciler = controller.reconciler
            kinds |= {kind.collection for kind in reconciler.declaration.kinds}
        may = allowed(component.rules)
        listed = {(group, resource) for group, resource, verb in may if verb == "list"}
        await runtime.close()
        judged = allowed(component.system.permissions.load().reviews)
        listed -= {(group, resource) for group, resource, _verb in judged}
        assert listed - OF_PROVIDERS == {(where.group, where.plural) for where in kinds}


def test_no_rule_is_wider_than_names() -> None:
    for component in COMPONENTS:
        for group, resource, verb in allowed(component.rules):
            assert "*" not in {group, verb}
            assert resource != "*" or (group, resource) in OF_PROVIDERS
            makes_any = component.name in ("cluster-api", "kubeadm-control-plane")
            assert resource != "*" or makes_any or verb in {"get", "list", "watch"}
            makes_secrets = component.name in ("cluster-api", "kubeadm-bootstrap", "kubeadm-control-plane")
            assert (resource, verb) != ("secrets", "update")
            # a control plane takes the Secrets that it made along
            assert (resource, verb) != ("secrets", "delete") or component.name == "kubeadm-control-plane"
            assert (resource, verb) != ("secrets", "create") or makes_secrets
    assert not {rule for rule in allowed(rules_of(members("wire"))) if rule[1] == "secrets"}


@pytest.mark.parametrize(("role", "words"), [(BOOT_ROLE, ("smee", "tootles")), (WORKFLOW_ROLE, ("tink-server",))])
def test_servers_below_up_may_do_what_they_may_on_a_cluster(role: Role, words: tuple[str, ...]) -> None:
    embedded = {
        (group, resource, verb)
        for rule in role.rules
        for group in rule.api_groups
        for resource in rule.resources
        for verb in rule.verbs
    }
    assert embedded == allowed(rules_of(components_named(words)))


def test_a_word_means_a_component_by_its_newer_or_older_name_or_a_group() -> None:
    assert [component.name for component in components_named(["hegel", "boots", "smee"])] == ["smee", "tootles"]
    assert components_named(["controllers", "wire"]) == COMPONENTS
    with pytest.raises(UnknownComponentError, match="known components: tink-controller"):
        members("ironic")


def test_every_deployment_has_an_account_of_its_own_and_is_bound_to_its_roles_only() -> None:
    objects = manifests(InstallOptions())
    deployments = of_kind(objects, "Deployment")
    assert set(deployments) == {"ironbell-tink-controller", "ironbell-rufio", "ironbell-wire"}
    for name, deployment in deployments.items():
        assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == name
        assert name in of_kind(objects, "ServiceAccount")
        binding = of_kind(objects, "ClusterRoleBinding")[name]
        assert binding["roleRef"]["name"] == name
        assert [(s["kind"], s["name"], s["namespace"]) for s in binding["subjects"]] == [
            ("ServiceAccount", name, "ironbell-system")
        ]
    rules = [rule for role in of_kind(objects, "Role").values() for rule in role["rules"] if "resourceNames" in rule]
    assert [(rule["resources"], rule["resourceNames"]) for rule in rules] == [
        (["leases"], ["ironbell-tink-controller"]),
        (["secrets"], ["ironbell-webhook-tls"]),
        (["leases"], ["ironbell-rufio"]),
    ]


def test_only_servers_toward_machines_are_on_the_nodes_network_with_capabilities() -> None:
    objects = manifests(InstallOptions(words=("controllers", "smee", "tootles", "tink-server")))
    pods = {name: found["spec"]["template"]["spec"] for name, found in of_kind(objects, "Deployment").items()}
    for name, pod in pods.items():
        (container,) = pod["containers"]
        security = container["securityContext"]
        assert security["capabilities"]["drop"] == ["ALL"]
        assert security["readOnlyRootFilesystem"]
        assert not security["allowPrivilegeEscalation"]
        serves = name != "ironbell-controllers"
        assert pod.get("hostNetwork", False) is serves
        assert ("add" in security["capabilities"]) is serves
        assert pod["securityContext"].get("runAsNonRoot", False) is not serves
        assert container["args"][:2] == ["run", name.removeprefix("ironbell-")]
        assert {"livenessProbe", "readinessProbe", "resources"} <= set(container)


def test_the_workflow_service_is_a_container_of_its_own_beside_the_boot_services() -> None:
    pod = of_kind(manifests(InstallOptions()), "Deployment")["ironbell-wire"]["spec"]["template"]["spec"]
    boot, workflow = pod["containers"]
    assert boot["args"][:4] == ["run", "smee", "tootles", "--health-address=127.0.0.1:8081"]
    assert workflow["args"][:3] == ["run", "tink-server", "--health-address=127.0.0.1:8082"]
    assert boot["name"] != workflow["name"]
    for container, port in ((boot, 8081), (workflow, 8082)):
        assert {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")} == {port}
    ports = [{one["name"]: one["containerPort"] for one in container["ports"]} for container in (boot, workflow)]
    assert ports == [{"http": 7080}, {"grpc": 42113}]
    service = of_kind(manifests(InstallOptions()), "Service")["ironbell-wire"]["spec"]["ports"]
    assert [one["name"] for one in service] == ["http", "grpc"]


def test_options_reach_the_manifests() -> None:
    options = InstallOptions(
        namespace="metal", image="registry.example/ironbell:1", words=("wire",), replicas=3,
        arguments={"wire": ("--interface=eth1",)},
    )  # fmt: skip
    objects = manifests(options)
    assert {o["metadata"]["namespace"] for o in objects if "namespace" in o["metadata"]} == {"metal"}
    spec = of_kind(objects, "Deployment")["ironbell-wire"]["spec"]
    assert spec["replicas"] == 3
    for container in spec["template"]["spec"]["containers"]:
        assert container["image"] == "registry.example/ironbell:1"
        assert container["args"][-1] == "--interface=eth1"
    policy = of_kind(objects, "ValidatingAdmissionPolicy")["ironbell-limit-servers"]
    assert "system:serviceaccount:metal:ironbell-wire" in policy["spec"]["matchConditions"][0]["expression"]


def test_everything_can_be_applied_and_comes_after_what_it_needs() -> None:
    order = list(COLLECTIONS)
    kinds = [document["kind"] for document in manifests(InstallOptions())]
    assert set(kinds) <= set(order)
    assert kinds[0] == "Namespace"
    assert kinds.index("Deployment") > max(
        number for number, kind in enumerate(kinds) if kind in {"CustomResourceDefinition", "ClusterRoleBinding"}
    )


def test_workers_can_be_set_for_every_controller() -> None:
    names = controller_names()
    assert len(names) == len(set(names))
    assert {"tink-workflow", "rufio-machine", "kubeadm-config", "capi-kubeadmcontrolplane"} <= set(names)


def test_who_looks_up_objects_of_providers_has_what_providers_offer() -> None:
    objects = list(manifests(InstallOptions(words=("kubeadm-bootstrap", "rufio"))))
    gathering = of_kind(objects, "ClusterRole")["ironbell-providers"]
    (selector,) = gathering["aggregationRule"]["clusterRoleSelectors"]
    assert selector == {"matchLabels": {"cluster.x-k8s.io/aggregate-to-manager": "true"}}
    assert "rules" not in gathering
    binding = of_kind(objects, "ClusterRoleBinding")["ironbell-providers"]
    assert [subject["name"] for subject in binding["subjects"]] == ["ironbell-kubeadm-bootstrap"]
    assert "ironbell-providers" not in of_kind(list(manifests(InstallOptions(words=("rufio",)))), "ClusterRole")


@pytest.mark.parametrize(
    ("words", "defined", "checked"),
    [(("cluster-api",), False, False), (("ipam",), True, False), (("cluster-api", "ipam"), True, True)],
)
def test_pools_are_upstreams_where_our_provider_is_not_installed(
    words: tuple[str, ...], defined: bool, checked: bool
) -> None:
    found = manifests(InstallOptions(words=words))
    pools = {"inclusterippools.ipam.cluster.x-k8s.io", "globalinclusterippools.ipam.cluster.x-k8s.io"}
    assert pools & of_kind(found, "CustomResourceDefinition").keys() == (pools if defined else set())
    hooks = {
        entry["name"]
        for configuration in of_kind(found, "ValidatingWebhookConfiguration").values()
        for entry in configuration["webhooks"]
    }
    assert {f"validate.{name}" for name in pools} & hooks == (
        {f"validate.{name}" for name in pools} if checked else set()
    )


async def test_the_embedded_api_takes_the_admission_policy() -> None:
    async with ApiServer.open(None, clock=ManualClock(), randomness=SeededRandomness(1)) as server:
        api, found = server.client(ADMIN), list(policies(InstallOptions(words=("smee", "wire"))))
        assert [document["kind"] for document in found] == [
            "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
        ]  # fmt: skip
        for document in found:
            await api.create(COLLECTIONS[document["kind"]], "", msgspec.json.encode(document))
