"""What a person is warned of who deletes a Hardware: by the embedded API, and through the webhook on a cluster."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from aiohttp import web

from ironbell.api.client import PatchType
from ironbell.api.crd.document import crd_document
from ironbell.api.tinkerbell import HARDWARE
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.admission import Admission, AdmissionRequest, Operation
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.schema.compiled import plain_shape
from ironbell.apiserver.warnings import collecting
from ironbell.app.admission import server as webhooks
from ironbell.app.admission.embedded import protect_held_servers
from ironbell.app.admission.reviews import hardware_deletion_review
from ironbell.app.admission.warnings import warn_of_tinkerbell
from ironbell.app.install.options import InstallOptions
from ironbell.app.install.webhooks import DELETION_PATH
from ironbell.app.install.webhooks import webhooks as configuration
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness

OWNED = {"v1alpha1.tinkerbell.org/ownerName": "m", "v1alpha1.tinkerbell.org/ownerNamespace": "default"}
IN_USE = (
    'Hardware "default/x" is in use by TinkerbellMachine default/m: it stays until that has released the server. '
    "Delete the owner, or the Machine that it belongs to."
)
HELD = (
    'Hardware "default/x" is held (fan): it stays until the hold is removed. Remove annotation "ironbell.dev/hold" if '
    "the server may be forgotten."
)
NOT_KEPT = (
    'Hardware "default/x" is held (fan): its deletion does not wait for the hold, which is lost with it. Set '
    'annotation "ironbell.dev/hold" on a new Hardware for this server as well.'
)
HOLD = {"ironbell.dev/hold": "fan"}
KEPT = ["ironbell.dev/hold"]
MOVED = {"clusterctl.cluster.x-k8s.io/delete-for-move": ""}
INFO = ResourceInfo(
    HARDWARE.group,
    HARDWARE.version,
    HARDWARE.plural,
    HARDWARE.kind,
    namespaced=True,
    shape=plain_shape({"type": "object"}),
)


def hardware(labels: dict[str, str], annotations: dict[str, str], finalizers: list[str]) -> dict[str, Any]:
    place = {"namespace": "default", "name": "x"}
    return {"metadata": {**place, "labels": labels, "annotations": annotations, "finalizers": finalizers}}


async def embedded(old: dict[str, Any]) -> list[str]:
    admission = Admission()
    warn_of_tinkerbell(admission)
    with collecting() as found:
        await admission.review(AdmissionRequest(Operation.DELETE, INFO, "default", "x", ADMIN, new=None, old=old))
    return list(found)


async def through_the_webhook(old: dict[str, Any]) -> list[str]:
    review = {"request": {"uid": "1", "operation": "DELETE", "oldObject": old}}

    class Request:
        path = DELETION_PATH

        async def read(self) -> bytes:
            return msgspec.json.encode(review)

    answer = await webhooks._answer(cast(web.Request, Request()), hardware_deletion_review)
    body = msgspec.json.decode(cast(bytes, answer.body))["response"]
    assert body["allowed"] is True
    return list(body.get("warnings", []))


@pytest.mark.parametrize("way", [embedded, through_the_webhook])
@pytest.mark.parametrize(
    ("labels", "annotations", "finalizers", "warnings"),
    [
        ({}, {}, [], []),
        (OWNED, {}, [], [IN_USE]),
        ({}, HOLD, KEPT, [HELD]),
        ({}, HOLD, [], [NOT_KEPT]),
        (OWNED, HOLD, KEPT, [IN_USE, HELD]),
        (OWNED, MOVED, [], []),
        ({}, {**MOVED, **HOLD}, KEPT, []),
    ],
)
async def test_the_deletion_of_a_server_in_use_or_held_warns(
    way: Any, labels: dict[str, str], annotations: dict[str, str], finalizers: list[str], warnings: list[str]
) -> None:
    assert await way(hardware(labels, annotations, finalizers)) == warnings


@pytest.mark.parametrize(
    ("annotations", "finalizers", "old", "subresource", "kept"),
    [
        (HOLD, [], {}, "", KEPT),
        (HOLD, ["a.b/c"], None, "", ["a.b/c", *KEPT]),
        (HOLD, KEPT, {}, "", None),
        ({}, [], {}, "", None),
        ({}, KEPT, {}, "", None),
        (HOLD, [], {}, "status", None),
        (HOLD, [], {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "", None),
        ({**HOLD, **MOVED}, [], {}, "", None),
    ],
)
async def test_the_embedded_api_keeps_a_held_server_from_the_write_on_that_holds_it(
    annotations: dict[str, str], finalizers: list[str], old: Any, subresource: str, kept: list[str] | None
) -> None:
    admission = Admission()
    protect_held_servers(admission)
    new = hardware({}, annotations, finalizers)
    before = {"metadata": old} if old is not None else None
    operation = Operation.UPDATE if old is not None else Operation.CREATE
    request = AdmissionRequest(operation, INFO, "default", "x", ADMIN, new=new, old=before, subresource=subresource)
    found = await admission.mutate(request)
    assert found == hardware({}, annotations, finalizers if kept is None else kept)
    assert new == hardware({}, annotations, finalizers), "what the client sent is left as it is"


@pytest.mark.parametrize("metadata", [None, "x", {"annotations": "x"}, {"annotations": HOLD, "finalizers": "x"}])
async def test_what_the_schema_rejects_is_left_to_it(metadata: Any) -> None:
    admission = Admission()
    protect_held_servers(admission)
    new = {"metadata": metadata}
    assert await admission.mutate(AdmissionRequest(Operation.CREATE, INFO, "default", "x", ADMIN, new=new)) == new


def test_deletions_are_sent_to_the_webhook_whatever_the_spec_is() -> None:
    (made,) = configuration(InstallOptions(image="i"))
    entry = next(one for one in made["webhooks"] if one["clientConfig"]["service"]["path"] == DELETION_PATH)
    assert entry["rules"][0]["operations"] == ["DELETE"]
    assert entry["rules"][0]["resources"] == ["hardware"]
    assert [match["name"] for match in entry["matchConditions"]] == ["by-others"]
    assert entry["failurePolicy"] == "Ignore"
    assert len({one["name"] for one in made["webhooks"]}) == len(made["webhooks"])


async def test_a_server_that_is_held_is_kept_in_the_same_write_and_not_deleted() -> None:
    where = HARDWARE.collection
    server = ApiServer.open(
        None, clock=ManualClock(), randomness=SeededRandomness(1), definitions=[crd_document(HARDWARE)]
    )
    async with server as made:
        protect_held_servers(made.admission)
        warn_of_tinkerbell(made.admission)
        api = made.client(ADMIN)

        async def annotated(hold: str | None) -> Any:
            patch = msgspec.json.encode({"metadata": {"annotations": {"ironbell.dev/hold": hold}}})
            body = await api.patch(where, "default", "x", patch, patch_type=PatchType.MERGE)
            return HARDWARE.decode(body).metadata

        await api.create(
            where,
            "default",
            msgspec.json.encode({"apiVersion": HARDWARE.api_version, "kind": "Hardware", **hardware({}, {}, [])}),
        )
        assert (await annotated("fan")).finalizers == KEPT
        found = msgspec.json.decode(await api.get(where, "default", "x"))
        found["metadata"].pop("finalizers")
        replaced = await api.replace(where, "default", "x", msgspec.json.encode(found))
        assert HARDWARE.decode(replaced).metadata.finalizers == KEPT, "whoever replaces it does not lose it"
        with collecting() as warnings:
            await api.delete(where, "default", "x")
        assert list(warnings) == [HELD]
        waits = HARDWARE.decode(await api.get(where, "default", "x")).metadata
        assert (waits.deletion_timestamp is not None, waits.finalizers) == (True, KEPT)
        assert (await annotated(None)).finalizers == KEPT, "the Hardware controller takes it off"
