"""Seed 000, claims S01 to S22: what is asked for, which servers it gets, and how they are booted.

The claims are numbered as in docs/reference/claims.md, which says of each whether upstream keeps it.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.agent import builtins
from ironbell.agent.actions import network as network_action
from ironbell.api.capt import KINDS
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachineSpec
from ironbell.api.crd.document import crd_document
from ironbell.codec.hostnetwork import networkd
from ironbell.contract.servers.claim import claim_of
from ironbell.controllers.capt.host import wish
from ironbell.image.kubernetes.release import PROGRAMS
from ironbell.provisioner.lifecycle.selection import verdict
from support.servers.captworld import server
from support.site.seedstory import LIBRARY, NUC, PROFILE, Story
from support.site.seedwire import Wire


def test_s01_a_cluster_is_requested_by_manifests(story: Story) -> None:
    there = story.chapters["running"].objects
    for kind in ("Cluster", "Machine", "MachineDeployment", "MachineSet"):
        assert there[kind], kind


def test_s02_the_manifest_states_how_many_nodes(story: Story) -> None:
    chapter = story.chapters["running"]
    assert len(chapter.machines(control_plane=True)) == 1
    assert len(chapter.machines()) == 3
    assert len(chapter.nodes) == 4


def test_s03_the_manifest_states_which_hardware(story: Story) -> None:
    chapter = story.chapters["running"]
    for machine in chapter.machines():
        report = chapter.hardware_of(machine).metadata.annotations["tinkerbell.org/agent-attributes"]
        assert msgspec.json.decode(report)["product"] == NUC
    (plane,) = chapter.machines(control_plane=True)
    report = chapter.hardware_of(plane).metadata.annotations["tinkerbell.org/agent-attributes"]
    assert msgspec.json.decode(report)["product"]["name"] == "PowerEdge R640"


def test_s04_references_point_to_kinds_of_tinkerbell_in_both_contracts(story: Story) -> None:
    chapter = story.chapters["running"]
    assert chapter.one("Cluster", "one").spec.infrastructure_ref.kind == "TinkerbellCluster"
    template = chapter.one("MachineDeployment", "one-md-0").spec.template.spec.infrastructure_ref
    assert (template.kind, template.name) == ("TinkerbellMachineTemplate", "one-md-0")
    for kind in KINDS:
        labels = crd_document(kind)["metadata"]["labels"]
        assert labels["cluster.x-k8s.io/v1beta1"] == labels["cluster.x-k8s.io/v1beta2"] == "v1beta1"


def test_s05_what_is_applied_is_stored_and_acted_upon(wire: Wire) -> None:
    (cluster,) = wire.items("clusters.cluster.x-k8s.io")
    assert cluster["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert cluster["status"]["initialization"]["infrastructureProvisioned"] is True


def test_s06_workflows_may_be_written_before_they_are_needed(story: Story) -> None:
    machine = next(
        one for one in story.chapters["two clusters"].machines(control_plane=True) if one.spec.cluster_name == "two"
    )
    made = story.of("Template", machine.metadata.name)
    assert made[-1].spec.data == LIBRARY


def test_s07_a_workflow_wipes_and_partitions_disks(story: Story) -> None:
    actions = _library_actions(story)
    images = [action.image for action in actions]
    assert images[:3] == ["wipe", "rootio", "rootio"]
    for image in images:
        assert builtins.resolve(image, command=[], environment={}).name in builtins.MODULES


def test_s08_the_in_memory_environment_installs_the_system(story: Story) -> None:
    chapter = story.chapters["running"]
    for machine in [*chapter.machines(), *chapter.machines(control_plane=True)]:
        there = chapter.servers[chapter.hardware_of(machine).metadata.name]
        assert there["done"][:2] == ["boot device pxe", "power on"]
        assert there["disk"]


def test_s09_a_workflow_gives_the_system_its_static_network(story: Story) -> None:
    action = next(action for action in _library_actions(story) if action.image == "network")
    network = network_action.parse(action.environment["INTERFACES"], "", "")
    (card,) = network.cards
    assert card.addresses[0].startswith("192.0.2.")
    assert network.name_servers == ("192.0.2.253",)
    written = "".join(networkd(network).values())
    assert "DHCP=no" in written
    assert "DNS=192.0.2.253" in written


def test_s10_kubelet_and_services_are_there_after_the_installation(story: Story) -> None:
    assert {"kubelet", "kubeadm"} <= set(PROGRAMS), "in images of `ironbell image build --kubernetes`"
    action = next(action for action in _library_actions(story) if action.image == "cexec")
    assert action.environment["CMD_LINE"] == "systemctl enable kubelet"


def test_s11_a_workflow_is_several_actions(story: Story) -> None:
    assert all(
        len(task.actions) > 1
        for workflow in story.chapters["running"].objects["Workflow"]
        for task in workflow.status.tasks
    )


def test_s12_actions_run_one_after_the_other_and_a_failure_stops_them(story: Story) -> None:
    failed = 0
    for _, workflow in story.revisions["Workflow"]:
        states = [action.state for task in workflow.status.tasks for action in task.actions]
        begun = [number for number, state in enumerate(states) if state not in ("", "PENDING")]
        if begun:
            assert begun == list(range(len(begun)))
            assert set(states[: len(begun) - 1]) <= {"SUCCESS"}
        if workflow.status.state == "FAILED":
            failed += 1
            assert "PENDING" in states
    assert failed


def test_s13_what_is_asked_for_is_seen_at_once(story: Story) -> None:
    first = min(at for at, _ in story.revisions["TinkerbellMachine"])
    assert first - story.facts["applied_s"] < 10


def test_s14_new_machines_become_workflows(story: Story) -> None:
    made = {workflow.metadata.name for _, workflow in story.revisions["Workflow"]}
    assert {obj.metadata.name for _, obj in story.revisions["TinkerbellMachine"] if obj.spec.hardware_name} <= made


def test_s15_hardware_profile_and_image_come_from_the_objects(story: Story) -> None:
    chapter = story.chapters["running"]
    for machine in chapter.machines():
        obj = chapter.one("TinkerbellMachine", machine.metadata.name)
        assert obj.spec.hardware_requirements.model == PROFILE["model"]
        assert f"ubuntu-{machine.spec.version}.raw.gz" in chapter.one("Template", machine.metadata.name).spec.data


def test_s16_three_workers_are_three_machines(story: Story) -> None:
    chapter = story.chapters["running"]
    assert len({chapter.hardware_of(machine).metadata.name for machine in chapter.machines()}) == 3


@pytest.mark.parametrize(
    ("wanted", "lacks"),
    [
        ({"cpuCores": 12}, ""),
        ({"cpuCores": 13}, "cpuCores is 12"),
        ({"memory": "33Gi"}, "memory is"),
        ({"disks": {"count": 1, "size": "1T"}}, "disks:"),
        ({"disks": {"count": 2}}, "disks: it has 1"),
    ],
)
def test_s17_processors_memory_and_disks_are_looked_at(story: Story, wanted: dict[str, object], lacks: str) -> None:
    servers = story.chapters["the second is gone"].objects["Hardware"]
    hardware = next(one for one in servers if claim_of(one) is None and one.metadata.name not in ("s00", "s01"))
    found = verdict(wish(msgspec.convert({"hardwareRequirements": wanted}, TinkerbellMachineSpec)), hardware)
    assert bool(found.problems) is bool(lacks), found.problems
    assert lacks in " ".join(map(str, found.problems))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"annotations": {"ironbell.dev/hold": "it is being repaired"}}, "held"),
        ({"status": {"state": "Error"}}, "Error"),
        ({"deleting": True}, "deleted"),
        ({"labels": {"v1alpha1.tinkerbell.org/ownerName": "x"}}, "belongs to"),
        ({"spec": {"disks": []}}, "disks"),
    ],
)
def test_s18_only_servers_that_are_free_and_well_are_taken(more: dict[str, object], why: str) -> None:
    found = verdict(wish(TinkerbellMachineSpec()), server("x", **more))
    assert why in " ".join(map(str, found.problems))


def test_s19_the_chosen_server_is_told_to_boot_from_the_network(story: Story) -> None:
    taken = [one for one in story.chapters["running"].servers.values() if one["installs"]]
    assert len(taken) == 4
    assert all(one["done"][0] == "boot device pxe" for one in taken)


def test_s20_the_boot_service_gives_kernel_initrd_and_script(wire: Wire) -> None:
    """To a server that may netboot; the other one is told to boot its disk."""
    free = next(
        one for one in wire.items("hardware") if "ironbell.dev/claimed-by" not in one["metadata"].get("annotations", {})
    )
    interface = free["spec"]["interfaces"][0]
    mac = interface["dhcp"]["mac"]
    interface["netboot"] = {**interface.get("netboot", {}), "allowPXE": True}
    patch = {"spec": {"interfaces": free["spec"]["interfaces"]}}
    assert wire.run(
        "patch", "hardware", free["metadata"]["name"], "--type", "merge", "-p", msgspec.json.encode(patch).decode()
    )
    script = wire.script(mac, "kernel")
    assert "initramfs" in script
    assert script.startswith("#!ipxe")


def test_s21_the_in_memory_environment_takes_over(story: Story) -> None:
    machine = story.chapters["running"].machines()[0]
    states = [workflow.status.state for workflow in story.of("Workflow", machine.metadata.name)]
    assert [state for state in dict.fromkeys(states) if state in ("PREPARING", "PENDING", "RUNNING")] == [
        "PREPARING",
        "PENDING",
        "RUNNING",
    ]


def test_s22_it_installs_the_system_to_disk(story: Story) -> None:
    chapter = story.chapters["running"]
    written = chapter.one("Template", chapter.machines()[0].metadata.name).spec.data
    assert "DEST_DISK: /dev/sda" in written
    assert sum(bool(one["disk"]) for one in chapter.servers.values()) == 4


def _library_actions(story: Story) -> list[Any]:
    """The actions of a Workflow that was made of the Template in the library."""
    machine = next(
        one for one in story.chapters["two clusters"].machines(control_plane=True) if one.spec.cluster_name == "two"
    )
    workflow = story.of("Workflow", machine.metadata.name)[-1]
    return [action for task in workflow.status.tasks for action in task.actions]
