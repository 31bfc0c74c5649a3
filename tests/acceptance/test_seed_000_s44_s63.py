"""Seed 000, claims S44 to S63: what is installed, what is done later, and what it is like to work with.

The claims are numbered as in docs/reference/claims.md, which says of each whether upstream keeps it.
"""

from __future__ import annotations

import msgspec
import pytest

from ironbell.agent.actions.disks import rootio_plan
from ironbell.api.capt.tinkerbellcluster import TinkerbellClusterSpec
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachineSpec
from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.tinkerbell.hardware import HARDWARE, AutoCapabilities, Hardware, HardwareSpec
from ironbell.contract.clusters.capabilities import capabilities
from ironbell.contract.servers.claim import WIPED, claim_of
from ironbell.contract.servers.ineffective import of_hardware
from ironbell.controllers.capt.templates import image_url
from ironbell.controllers.ipam.addresses import IpAddressReconciler
from ironbell.controllers.ipam.claims import IpAddressClaimReconciler
from ironbell.controllers.ipam.hardware import HardwareAddressReconciler
from ironbell.controllers.ipam.observed import ADDRESS_POOL
from ironbell.provisioner.default_template import Inputs, default_template
from support.servers.captscene import MACHINES, Engine, add_machine, delete, get, hardware, scene
from support.servers.captworld import server
from support.servers.ipamworld import a_world, add_pool
from support.site.seedstory import Chapter, Story
from support.site.seedwire import Wire


def free(chapter: Chapter) -> list[str]:
    return [one.metadata.name for one in chapter.objects["Hardware"] if claim_of(one) is None]


def names(chapter: Chapter) -> set[str]:
    return {one.metadata.name for one in chapter.objects["Machine"]}


def test_s44_a_minimal_linux_is_loaded_over_the_network(wire: Wire) -> None:
    """And no more once the machine runs: then the same address says that the disk is booted."""
    taken = next(
        one for one in wire.items("hardware") if "ironbell.dev/claimed-by" in one["metadata"].get("annotations", {})
    )
    script = wire.script(taken["spec"]["interfaces"][0]["dhcp"]["mac"], "exit")
    assert "kernel " not in script
    booted = taken["metadata"]["annotations"].get("ironbell.dev/history", "")
    assert "SUCCESS" in booted, "an agent in that Linux has carried out its Workflow"


def test_s45_an_installation_may_partition_and_make_file_systems() -> None:
    partitions = [{"label": "EFI", "number": 1, "size": 1048576}, {"label": "ROOT", "number": 2, "size": 0}]
    disk = {"device": "/dev/sda", "wipe_table": True, "partitions": partitions}
    mount = {"create": {"options": ["-L", "ROOT"]}, "device": "/dev/sda2", "format": "ext4", "point": "/"}
    storage = {"disks": [disk], "filesystems": [{"mount": mount}]}
    body = msgspec.json.encode({"metadata": {"instance": {"storage": storage}}})
    found = rootio_plan.parse(body)
    assert "ROOT" in rootio_plan.partition_script(found.disks[0], mbr=False, sector_size=512)
    assert rootio_plan.format_command(found.filesystems[0].mount)[0] == "mkfs.ext4"


def test_s46_the_installed_system_starts_as_a_node(story: Story) -> None:
    chapter = story.chapters["running"]
    assert set(chapter.nodes) == names(chapter)
    for name in names(chapter):
        assert chapter.one("TinkerbellMachine", name).status.addresses[0].address.startswith("192.0.2.")


def test_s47_kubeadm_inits_or_joins_by_role(story: Story) -> None:
    chapter = story.chapters["running"]
    (plane,) = chapter.machines(control_plane=True)
    for machine in [plane, *chapter.machines()]:
        text = story.user_data[chapter.servers[chapter.hardware_of(machine).metadata.name]["disk"]]
        assert ("kubeadm init" in text) is (machine is plane)
        assert ("kubeadm join" in text) is not (machine is plane)


def test_s48_control_planes_run_services_and_workers_applications(story: Story) -> None:
    chapter = story.chapters["running"]
    for machine in chapter.machines(control_plane=True):
        taints = chapter.nodes[machine.status.node_ref.name]["spec"]["taints"]
        assert {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"} in taints
    for machine in chapter.machines():
        assert not chapter.nodes[machine.status.node_ref.name]["spec"].get("taints")


def test_s49_clusters_and_single_machines_are_watched(story: Story) -> None:
    """The machine that hung was found, and something was done about it; nothing else was touched."""
    chapter = story.chapters["healed"]
    assert chapter.one("Cluster", "one").status.phase == "Provisioned"
    cycled = [
        machine.metadata.name
        for _, machine in story.revisions["Machine"]
        if any(one.type == "HealthCheckSucceeded" and one.status == "False" for one in machine.status.conditions)
    ]
    assert set(cycled) == {story.facts["hung"]}
    for name in {machine.metadata.name for machine in chapter.machines()}:
        conditions = {one.type: one.status for one in chapter.one("TinkerbellMachine", name).status.conditions}
        assert (conditions["PoweredOn"], conditions["BMCContactable"]) == ("True", "True"), name


def test_s50_scaling_up_installs(story: Story) -> None:
    before, after = story.chapters["applied again"].servers, story.chapters["scaled up"].servers
    assert sum(one["installs"] for one in after.values()) == sum(one["installs"] for one in before.values()) + 1


def test_s51_scaling_down_decommissions(story: Story) -> None:
    before, after = story.chapters["the second waits"].servers, story.chapters["two clusters"].servers
    assert sum(one["wipes"] for one in after.values()) == sum(one["wipes"] for one in before.values()) + 2


def test_s52_an_upgrade_goes_node_by_node(story: Story) -> None:
    ready = story.facts["ready_while_upgraded"]
    assert min(ready) >= 4, "never more than one of five is away"
    assert ready[-1] == 5


def test_s53_nodes_that_are_not_needed_are_taken_away_safely(story: Story) -> None:
    """Drained, wiped and switched off, in this order, and only then free."""
    after = story.chapters["two clusters"]
    for name in names(story.chapters["the second waits"]) - names(after):
        drained = [machine for machine in story.of("Machine", name) if machine.metadata.deletion_timestamp]
        assert any(one.status.deletion is not None and one.status.deletion.node_drain_start_time for one in drained)
    for name in free(after):
        if after.servers[name]["installs"]:
            assert after.servers[name]["power"] == "off"
            assert not after.servers[name]["disk"]


def test_s54_disks_are_wiped_and_what_was_done_is_written_down(story: Story) -> None:
    chapter = story.chapters["the second is gone"]
    back = [name for name in free(chapter) if chapter.servers[name]["installs"]]
    assert len(back) >= 2
    for name in back:
        certificate = msgspec.json.decode(chapter.one("Hardware", name).metadata.annotations[WIPED])
        assert certificate["wiped"] is True
        assert certificate["disks"] == ["/dev/sda"]


def test_s55_addresses_are_given_back() -> None:
    """An address out of a pool serves as long as a cluster has the server, and goes back when that is given back."""
    world = scene(Engine(), servers=0)
    world.resolvers = a_world().resolvers
    add_pool(world, "192.0.2.10-192.0.2.20", gateway="192.0.2.1")
    annotations = {ADDRESS_POOL: "pool"}
    interface = {"dhcp": {"mac": "02:00:00:00:00:01"}}
    world.add(HARDWARE, server("s0", annotations=annotations, spec={"interfaces": [interface]}))
    add_machine(world)
    everybody = (MACHINES, HardwareAddressReconciler(), IpAddressClaimReconciler(), IpAddressReconciler())
    world.settle(*everybody)
    assert get(world).status.addresses[0].address == "192.0.2.10"
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {ADDRESS_POOL: None}}})
    world.settle(*everybody)
    assert world.list(IP_ADDRESS_CLAIM), "not while somebody has the server"
    delete(world)
    world.settle(*everybody)
    assert claim_of(hardware(world)) is None
    assert not world.list(IP_ADDRESS_CLAIM)
    assert not world.list(IP_ADDRESS)


def test_s56_what_differs_from_what_is_wanted_is_put_right(story: Story) -> None:
    """A Machine that somebody deleted is there again, under another name."""
    before, after = story.chapters["upgraded"], story.chapters["healed"]
    assert story.facts["deleted"] not in names(after)
    assert len(names(after)) == len(names(before))


def test_s57_the_same_again_is_the_same(story: Story) -> None:
    assert story.facts["templates_made_by_applying_again"] == 0
    chapter = story.chapters["running"]
    made = {
        chapter.one("Template", machine.metadata.name).spec.data.replace(machine.metadata.name, "NAME")
        for machine in chapter.machines()
    }
    assert len(made) == 1


def test_s58_scaling_upgrades_and_recovery_go_by_themselves(story: Story) -> None:
    for title, count in (("scaled up", 5), ("upgraded", 5), ("healed", 5), ("two clusters", 4)):
        phases = [
            one.status.phase for one in story.chapters[title].objects["Machine"] if one.spec.cluster_name == "one"
        ]
        assert phases.count("Running") == (count if title != "two clusters" else 3)


def test_s59_it_is_done_with_the_tools_of_clouds(wire: Wire) -> None:
    table = wire.run("get", "clusters,machines.cluster.x-k8s.io,tinkerbellmachines", "-A")
    assert "Provisioned" in table
    assert "tinkerbell://" in table


@pytest.mark.parametrize("device", ["/dev/nvme0n1", "/dev/sda", "/dev/disk/by-id/wwn-0x5000"])
def test_s60_servers_of_all_kinds(device: str) -> None:
    """Partitions are found and not guessed, and images are looked up by architecture."""
    text = default_template(Inputs("m", "http://192.0.2.1/a.raw.gz", device, "http://192.0.2.1:7080"))
    assert f"DEST_DISK: {device}\n" in text
    assert "DEST_PARTITION: root" in text
    arm = server("x", spec={"interfaces": [{"dhcp": {"mac": "02:00:00:00:00:01", "arch": "aarch64"}}]})
    assert capabilities(arm).architecture == "arm64"
    wanted = TinkerbellMachineSpec(image_lookup_format="http://x/{{.OSDistro}}-{{.Architecture}}.raw")
    assert image_url(wanted, TinkerbellClusterSpec(), "v1.35.0", "arm64").endswith("-arm64.raw")


def test_s61_the_whole_life_from_installation_to_decommission(story: Story) -> None:
    end = story.chapters["the second is gone"]
    assert not [one for one in end.objects["Cluster"] if one.metadata.name == "two"]
    server_of_two = next(
        obj.spec.hardware_name
        for _, obj in story.revisions["TinkerbellMachine"]
        if obj.metadata.name.startswith("two-") and obj.spec.hardware_name
    )
    assert server_of_two in free(end)
    assert end.one("Hardware", server_of_two).spec.user_data is None
    assert (end.servers[server_of_two]["power"], end.servers[server_of_two]["disk"]) == ("off", "")


@pytest.mark.xfail(reason="waits for self-enrolment: servers that nobody has written down", strict=True)
def test_s62_servers_come_like_machines_of_a_cloud() -> None:
    """The setting that lets a server enrol has an effect."""
    assert not of_hardware(Hardware(spec=HardwareSpec(auto=AutoCapabilities(enrollment_enabled=True))))


def test_s63_what_was_done_can_be_read_later(story: Story) -> None:
    """The Workflows are gone, and the Hardware knows what they did; also of those that failed."""
    chapter = story.chapters["two clusters"]
    history = msgspec.json.decode(
        story.chapters["running"].one("Hardware", "s02").metadata.annotations["ironbell.dev/history"]
    )
    assert [one["state"] for one in history] == ["SUCCESS", "FAILED"]
    for name in free(chapter):
        if chapter.servers[name]["wipes"]:
            annotations = chapter.one("Hardware", name).metadata.annotations
            last = msgspec.json.decode(annotations["ironbell.dev/history"])[0]
            assert last["workflow"].endswith("-wipe")
