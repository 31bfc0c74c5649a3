"""The controller of in-band inventories: records the agent's report in the status of Hardware, and the reports of agent
and BMC in labels.

A label of the same name that a user has set is never changed; once the user removes it, the controller sets its own
again. Outdated labels are removed.
"""

from __future__ import annotations

from datetime import datetime

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.inventory import Attributes
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.base.clock import rfc3339
from ironbell.contract.clusters.capabilities import capabilities
from ironbell.contract.servers.agent_inventory import in_band
from ironbell.contract.servers.inventory_labels import INVENTORY_LABELS, LABELS, labels_of, remembered, to_remember
from ironbell.kube.decision import Decision, Key, MergePatch, patch
from ironbell.kube.draft import Draft, replace
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Declaration


class HardwareInventoryReconciler:
    """Keeps `status.attributes.inBand` and the labels of the inventory."""

    name = "tink-inventory"
    declaration = Declaration(HARDWARE)

    def observe(self, cache: Cache, key: Key) -> Hardware | None:
        hardware = cache.get(HARDWARE, *key)
        return None if hardware is None or is_deleting(hardware) else hardware

    def decide(self, observed: Hardware, now: datetime) -> Decision:
        draft = Draft(HARDWARE, observed, now)
        draft.first.append(_labelled(observed))
        inventory = in_band(draft.metadata.annotations.get(ANNOTATION_AGENT_ATTRIBUTES, ""))
        old = draft.status.attributes or Attributes()
        if inventory != (replace(old.in_band, last_updated=None) if old.in_band is not None else None):
            new = replace(inventory, last_updated=rfc3339(now)) if inventory is not None else None
            draft.status = replace(draft.status, attributes=replace(old, in_band=new))
        return draft.decision()


def _labelled(hardware: Hardware) -> MergePatch | None:
    """The write that sets the labels of the inventory, except those that users have set."""
    current, annotations = hardware.metadata.labels, hardware.metadata.annotations
    own = remembered(annotations.get(INVENTORY_LABELS, ""))
    others = {label.key for label in LABELS if label.key in current and current[label.key] != own.get(label.key)}
    desired = {key: value for key, value in labels_of(capabilities(hardware)).items() if key not in others}
    stale = dict.fromkeys(key for key in own if key in current and key not in desired and key not in others)
    news = {key: value for key, value in desired.items() if current.get(key) != value}
    text = to_remember(desired)
    if not stale and not news and annotations.get(INVENTORY_LABELS, "") == text:
        return None
    metadata = {"labels": {**stale, **news}, "annotations": {INVENTORY_LABELS: text or None}}
    return patch(HARDWARE, hardware, {"metadata": metadata}, locked=True)
