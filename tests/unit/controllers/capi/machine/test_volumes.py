"""The volumes that are still attached to a node."""

from __future__ import annotations

from ironbell.controllers.capi.machine.drain.volumes import Attached, VolumesOfNode, VolumeView, attached, message

DATA = VolumeView("pv-data", "kubernetes.io/csi/disk.io^h1", "shop/data")
LOGS = VolumeView("pv-logs", "kubernetes.io/csi/disk.io^h2", "ops/logs")
BARE = VolumeView("pv-bare")


def test_volumes_in_the_nodes_status_and_in_attachments_are_combined() -> None:
    node = VolumesOfNode((DATA.attached_name,), ("pv-logs", "pv-bare"), (DATA, LOGS, BARE, VolumeView("pv-other")))
    assert attached(node, ignored_claims=()) == Attached(
        claims=("ops/logs", "shop/data"), volumes_without_claim=("pv-bare",)
    )


def test_volumes_of_pods_that_stay_are_not_waited_for() -> None:
    node = VolumesOfNode((), ("pv-logs",), (LOGS,))
    assert attached(node, ignored_claims={"ops/logs"}).is_empty


def test_attachments_without_a_volume_are_waited_for() -> None:
    node = VolumesOfNode(("kubernetes.io/nfs/x",), ("pv-gone",), (DATA,))
    result = attached(node, ignored_claims=())
    assert (result.names_without_volume, result.attachments_without_volume) == (("kubernetes.io/nfs/x",), ("pv-gone",))
    assert attached(VolumesOfNode(), ignored_claims=()).is_empty


def test_message() -> None:
    result = Attached(("a/1", "a/2", "a/3", "a/4", "a/5", "a/6"), ("pv",), ("x",), ("y",))
    assert message(result, "T") == "\n".join(
        (
            "Waiting for Node volumes to be detached (started at T)",
            "* PersistentVolumeClaims: a/1, a/2, a/3, a/4, a/5, ... (1 more)",
            "* PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim: pv",
            "* Node with .status.volumesAttached entries not matching a PersistentVolume: x",
            "* VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume: y",
        )
    )
