"""The demonstration's servers: of which kind they are, and what the lab file and the manifest say of them."""

from __future__ import annotations

from typing import Any

from ironbell.app.registry import KINDS
from ironbell.codec import goyaml
from ironbell.demo.clustermanifests import ClusterRequest, cluster
from ironbell.demo.clusterplan import lab_file, plan
from ironbell.lab.description import parse


def test_only_the_extra_workers_are_emulated() -> None:
    made = plan(workers=2, qemu_workers=1, has_kvm=False)
    assert made.kinds == {"cp-1": "namespace", "w-1": "namespace", "w-2": "namespace", "q-1": "qemu"}
    assert made.worker_names == {"w-1", "w-2", "q-1"}
    assert made.shrinking.machines == ("w-1", "w-2")


def test_where_there_is_kvm_all_have_real_firmware() -> None:
    assert set(plan(workers=1, qemu_workers=1, has_kvm=True).kinds.values()) == {"qemu"}


def test_groups_without_servers_are_left_out() -> None:
    assert plan(workers=0, qemu_workers=1, has_kvm=False).shrinking.machines == ("q-1",)
    assert plan(workers=1, qemu_workers=0, has_kvm=False).kinds == {"cp-1": "namespace", "w-1": "namespace"}


def test_the_lab_takes_the_file() -> None:
    made = plan(workers=1, qemu_workers=1, has_kvm=False, firmware="bios")
    text = goyaml.dump(lab_file(made, name="demo", subnet="192.168.76.0/24"))
    lab = parse(goyaml.load(text.encode()))
    assert {machine.name: machine.kind for machine in lab.machines} == made.kinds
    assert {machine.firmware for machine in lab.machines} == {"bios"}
    assert lab.network.reachable


def test_each_pool_is_a_deployment_on_servers_of_its_role() -> None:
    documents = cluster(ClusterRequest("demo", "192.0.2.1", "http://x/image", "v1.36.3", "pause:1", {"w": 2, "q": 1}))
    deployments = {one["metadata"]["name"]: one["spec"] for one in documents if one["kind"] == "MachineDeployment"}
    assert {name: spec["replicas"] for name, spec in deployments.items()} == {"demo-w": 2, "demo-q": 1}
    templates = {one["metadata"]["name"]: one for one in documents if one["kind"] == "TinkerbellMachineTemplate"}
    assert {name: _role(one) for name, one in templates.items()} == {"demo-cp": "cp", "demo-w": "w", "demo-q": "q"}
    for spec in deployments.values():
        assert spec["template"]["spec"]["infrastructureRef"]["name"] in templates
    known = {kind.kind for kind in KINDS} | {"ConfigMap"}
    assert {one["kind"] for one in documents} <= known


def test_pods_get_a_network_by_an_image_that_is_on_the_nodes() -> None:
    documents = cluster(ClusterRequest("demo", "192.0.2.1", "http://x/image", "v1.36.3", "pause:1", {"w": 1}))
    (settings,) = (one for one in documents if one["kind"] == "ConfigMap")
    assert "image: pause:1\n" in settings["data"]["pod-network.yaml"]


def _role(template: dict[str, Any]) -> str:
    (term,) = template["spec"]["template"]["spec"]["hardwareAffinity"]["required"]
    return str(term["labelSelector"]["matchLabels"]["role"])
