"""Seed 000, claims S23 to S43: installation, the cluster that comes of it, and what a Machine becomes.

The claims are numbered as in docs/reference/claims.md, which says of each whether upstream keeps it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.agent.actions import network as network_action
from ironbell.codec.hostnetwork import networkd
from ironbell.contract.servers.claim import WIPED, claim_of
from ironbell.kube.conditions import find_condition
from support.site.seedstory import LIBRARY, PROFILE, Chapter, Story
from support.site.seedwire import Wire


def script_of(story: Story, chapter: Chapter, machine: Any) -> str:
    """What the metadata service gave the machine's system when it booted first."""
    return story.user_data[chapter.servers[chapter.hardware_of(machine).metadata.name]["disk"]]


def node_of(chapter: Chapter, machine: Any) -> dict[str, Any]:
    return chapter.nodes[machine.status.node_ref.name]


def names(story: Story, chapter: str) -> set[str]:
    return {one.metadata.name for one in story.chapters[chapter].objects["Machine"]}


def wiped(story: Story, server: str) -> set[str]:
    """The machines after which a server was wiped; each certificate goes when the server is claimed again."""
    annotations = [hardware.metadata.annotations for hardware in story.of("Hardware", server)]
    return {msgspec.json.decode(found[WIPED], type=dict)["machine"] for found in annotations if WIPED in found}


def test_s23_the_network_is_configured_by_the_workflow() -> None:
    interface = {
        "dhcp": {
            "mac": "02:00:00:00:00:01",
            "ip": {"address": "192.0.2.7", "netmask": "255.255.255.0", "gateway": "192.0.2.1"},
            "name_servers": ["192.0.2.2", "192.0.2.3"],
        }
    }
    network = network_action.parse(msgspec.json.encode([interface]).decode(), "", "")
    (written,) = networkd(network).values()
    for line in ("Address=192.0.2.7/24", "Gateway=192.0.2.1", "DNS=192.0.2.2", "DNS=192.0.2.3", "DHCP=no"):
        assert line in written
    assert ".hardware.spec.interfaces" in LIBRARY


def test_s24_kubeadm_and_kubelet_are_configured(story: Story) -> None:
    chapter = story.chapters["running"]
    for machine in chapter.machines():
        assert "kubeadm join" in script_of(story, chapter, machine)
        assert node_of(chapter, machine)["status"]["nodeInfo"]["kubeletVersion"] == machine.spec.version


def test_s25_the_progress_of_each_action_is_followed(story: Story) -> None:
    for kind, type_ in (("TinkerbellMachine", "Installed"), ("Machine", "InfrastructureReady")):
        said = {
            condition.message
            for _, obj in story.revisions[kind]
            if (condition := find_condition(obj.status.conditions, type_)) is not None
        }
        for number, action in enumerate(("stream image", "add tink cloud-init config"), 1):
            assert f"action {number} of 6: {action}" in said, kind


def test_s26_failures_and_logs_are_seen_while_it_runs(story: Story, wire: Wire) -> None:
    """On the objects; a page that shows them belongs to the dashboard."""
    said = [
        condition.message
        for _, obj in story.revisions["TinkerbellMachine"]
        if (condition := find_condition(obj.status.conditions, "Ready")) is not None and condition.reason == "Retrying"
    ]
    failed = "action 'add tink cloud-init config' FAILED: exit status 1"
    assert said[0].startswith(f"Attempt 1 of 3 failed and is retried: {failed}")
    (workflow,) = wire.items("workflows")
    annotations = workflow["metadata"]["annotations"]
    assert any(name.startswith("ironbell.dev/log.") for name in annotations), sorted(annotations)


def test_s27_control_plane_nodes_run_its_services(story: Story) -> None:
    chapter = story.chapters["running"]
    (plane,) = chapter.machines(control_plane=True)
    assert "kubeadm init" in script_of(story, chapter, plane)
    for condition in ("APIServerPodHealthy", "ControllerManagerPodHealthy", "EtcdPodHealthy"):
        found = find_condition(plane.status.conditions, condition)
        assert found is not None
        assert found.status == "True"


def test_s28_kubeadm_sets_them_up_for_one_network(story: Story) -> None:
    chapter = story.chapters["running"]
    (plane,) = chapter.machines(control_plane=True)
    script = script_of(story, chapter, plane)
    assert "192.168.0.0/16" in script
    assert chapter.one("Cluster", "one").spec.control_plane_endpoint.host in script


def test_s29_workers_join_after_their_installation(story: Story) -> None:
    chapter = story.chapters["running"]
    for machine in chapter.machines():
        assert "kubeadm join" in script_of(story, chapter, machine)
        assert node_of(chapter, machine)["spec"]["providerID"] == machine.spec.provider_id


def test_s30_a_node_that_joined_takes_workloads(story: Story) -> None:
    chapter = story.chapters["running"]
    for machine in chapter.machines():
        node = node_of(chapter, machine)
        assert any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"])
        assert not node["spec"].get("taints")


def test_s31_what_is_there_is_kept_as_it_is_wanted(story: Story) -> None:
    """One worker hung: it was switched off and on, and is the same Machine."""
    before, after = story.chapters["upgraded"], story.chapters["healed"]
    hung = story.facts["hung"]
    assert before.one("Machine", hung).metadata.uid == after.one("Machine", hung).metadata.uid
    server = after.hardware_of(after.one("Machine", hung)).metadata.name
    assert after.servers[server]["power_cycles"] == story.facts["power cycles before"] + 1


def test_s32_scaling_up_makes_nodes_by_new_workflows(story: Story) -> None:
    (new,) = names(story, "scaled up") - names(story, "applied again")
    assert story.of("Workflow", new)[-1].status.state == "SUCCESS"
    assert len(story.chapters["scaled up"].nodes) == 5


def test_s33_taking_nodes_away_is_a_workflow_too(story: Story) -> None:
    gone = names(story, "the second waits") - names(story, "two clusters")
    assert len(gone) == 2
    for name in gone:
        (action,) = story.of("Workflow", f"{name}-wipe")[-1].status.tasks[0].actions
        assert (action.name, action.state) == ("wipe", "SUCCESS")


def test_s34_a_new_version_is_rolled_out(story: Story) -> None:
    chapter = story.chapters["upgraded"]
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in chapter.nodes.values()} == {"v1.35.0"}


def test_s35_a_new_image_is_rolled_out(story: Story) -> None:
    chapter = story.chapters["upgraded"]
    for machine in chapter.machines():
        obj = chapter.one("TinkerbellMachine", machine.metadata.name)
        assert obj.spec.image_lookup_os_version == "24.04"
        assert "ubuntu-v1.35.0.raw.gz" in chapter.one("Template", machine.metadata.name).spec.data


def test_s36_what_was_given_back_serves_another_cluster(story: Story) -> None:
    chapter = story.chapters["two clusters"]
    (plane,) = [one for one in chapter.objects["Machine"] if one.spec.cluster_name == "two"]
    hardware = chapter.hardware_of(plane)
    installed = chapter.servers[hardware.metadata.name]
    assert installed["wipes"] >= 1
    assert any("one-md-0" in machine for machine in wiped(story, hardware.metadata.name))
    assert WIPED not in hardware.metadata.annotations, "of an earlier lifetime"
    assert "kubeadm init" in story.user_data[installed["disk"]], "its own user data, not its former owner's"


def test_s37_the_manifest_says_which_machines_have_which_role(story: Story) -> None:
    chapter = story.chapters["running"]
    role = "node-role.kubernetes.io/control-plane"
    planes = {one.status.node_ref.name for one in chapter.machines(control_plane=True)}
    assert {name for name, node in chapter.nodes.items() if role in node["metadata"]["labels"]} == planes


def test_s38_the_manifest_carries_a_hardware_profile(story: Story) -> None:
    chapter = story.chapters["running"]
    wanted = chapter.one("TinkerbellMachine", chapter.machines()[0].metadata.name).spec.hardware_requirements
    assert (wanted.model, wanted.cpu_cores, wanted.memory) == (PROFILE["model"], PROFILE["cpuCores"], PROFILE["memory"])


def test_s39_controllers_watch_for_what_is_new(story: Story) -> None:
    """The second cluster's machine waits; it gets a server in the moment in which one is given back."""
    waits = story.chapters["the second waits"]
    (machine,) = [one for one in waits.objects["Machine"] if one.spec.cluster_name == "two"]
    assert not waits.one("TinkerbellMachine", machine.metadata.name).spec.hardware_name
    freed = min(
        at
        for at, hardware in story.revisions["Hardware"]
        if at > story.facts["scaled_down_s"] and claim_of(hardware) is None
    )
    taken = min(
        at
        for at, obj in story.revisions["TinkerbellMachine"]
        if obj.metadata.name == machine.metadata.name and obj.spec.hardware_name
    )
    assert 0 <= taken - freed < 5


def test_s40_a_machine_becomes_profile_image_and_configuration(story: Story) -> None:
    chapter = story.chapters["running"]
    machine = chapter.machines()[0]
    assert machine.spec.version in chapter.one("Template", machine.metadata.name).spec.data
    assert script_of(story, chapter, machine).startswith("## template: jinja")
    assert chapter.hardware_of(machine).metadata.name in ("s02", "s03", "s04", "s05")


def test_s41_the_workflow_is_submitted_and_fetched_by_the_agent(story: Story, wire: Wire) -> None:
    workflow = story.chapters["running"].objects["Workflow"][0]
    assert workflow.spec.template_ref == workflow.metadata.name
    assert workflow.spec.hardware_ref
    (fetched,) = wire.items("workflows")
    assert fetched["status"]["state"] == "SUCCESS", "over gRPC, by an agent at an address of its own"


def test_s42_the_submission_holds_image_network_and_scripts(story: Story) -> None:
    chapter = story.chapters["running"]
    data = chapter.one("Template", chapter.machines()[0].metadata.name).spec.data
    assert "IMG_URL" in data
    assert "metadata_urls" in data, "where cloud-init finds its scripts"
    library = story.of("Workflow", names(story, "two clusters").difference(names(story, "healed")).pop())[-1]
    by_name = {action.name: action for task in library.status.tasks for action in task.actions}
    assert "192.0.2." in by_name["network"].environment["INTERFACES"]
    assert by_name["kubelet"].environment["CMD_LINE"]


def test_s43_boot_service_and_installation_are_orchestrated(story: Story) -> None:
    """A server may boot from the network while it is installed, and not before and after."""
    machine = story.chapters["running"].machines(control_plane=True)[0]
    server = story.chapters["running"].hardware_of(machine).metadata.name
    allowed = [
        any(interface.netboot is not None and interface.netboot.allow_pxe for interface in one.spec.interfaces)
        for at, one in story.revisions["Hardware"]
        if one.metadata.name == server and at <= story.chapters["running"].at_s
    ]
    assert [first for first, before in zip(allowed, [None, *allowed], strict=False) if first != before] == [
        False,
        True,
        False,
    ]
