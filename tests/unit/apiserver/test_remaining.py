"""What an ending namespace says of itself."""

from __future__ import annotations

import msgspec

from ironbell.api.core import CONFIG_MAP
from ironbell.apiserver.builtin.kinds import builtin_resources
from ironbell.apiserver.crds.rules import CrdRules
from ironbell.apiserver.lifecycle.remaining import Remaining
from ironbell.apiserver.resources import Resources
from ironbell.apiserver.store.entry import read_entry
from ironbell.base.clock import ManualClock

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def remaining(*finalizers: str) -> Remaining:
    resources = Resources()
    for versions in builtin_resources(CrdRules(resources, ManualClock())):
        resources.set(versions)
    body = msgspec.json.encode({"metadata": {"name": "a", "uid": "1", "finalizers": finalizers}})
    result = Remaining()
    result.add(resources.find(CONFIG_MAP.collection), [read_entry("configmaps", ("n", "a"), 1, body=body)])
    return result


def test_what_is_left_is_counted() -> None:
    left = remaining("example.org/a", "example.org/b")
    assert left
    messages = {entry["type"]: entry["message"] for entry in left.conditions((), now=NOW)}
    assert messages["NamespaceContentRemaining"] == "Some resources are remaining: configmaps. has 1 resource instances"
    assert messages["NamespaceFinalizersRemaining"] == (
        "Some content in the namespace has finalizers remaining: "
        "example.org/a in 1 resource instances, example.org/b in 1 resource instances"
    )


def test_what_did_not_change_keeps_its_time() -> None:
    old = remaining("example.org/a").conditions((), now=NOW)
    assert remaining("example.org/a").conditions(old, now=LATER) == old
    after = Remaining().conditions(old, now=LATER)
    times = {entry["type"]: entry["lastTransitionTime"] for entry in after}
    assert times["NamespaceContentRemaining"] == LATER
    assert times["NamespaceDeletionContentFailure"] == NOW
    assert not Remaining()
