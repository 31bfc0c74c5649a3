"""What a person is warned of who deletes a Hardware: by the embedded API, and through the webhook on a cluster."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from aiohttp import web

from ironbell.api.tinkerbell import HARDWARE
from ironbell.apiserver.admission import Admission, AdmissionRequest, Operation
from ironbell.apiserver.identity import ADMIN
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.schema.shape import plain_shape
from ironbell.apiserver.warnings import collecting
from ironbell.app import webhooks
from ironbell.app.install.options import InstallOptions
from ironbell.app.install.webhooks import DELETION_PATH
from ironbell.app.install.webhooks import webhooks as configuration
from ironbell.app.tinkerbell_warnings import warn_of_tinkerbell
from ironbell.app.webhook_reviews import hardware_deletion_review

OWNED = {"v1alpha1.tinkerbell.org/ownerName": "m", "v1alpha1.tinkerbell.org/ownerNamespace": "default"}
IN_USE = (
    'Hardware "default/x" is in use by TinkerbellMachine default/m: it stays until that has released the server. '
    "Delete the owner, or the Machine that it belongs to."
)
HELD = (
    'Hardware "default/x" is held (fan), which is lost with it: a Hardware that is created anew for this server can be '
    'claimed. Set annotation "ironbell.dev/hold" on that as well.'
)
INFO = ResourceInfo(
    HARDWARE.group,
    HARDWARE.version,
    HARDWARE.plural,
    HARDWARE.kind,
    namespaced=True,
    shape=plain_shape({"type": "object"}),
)


def hardware(labels: dict[str, str], annotations: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": "x", "labels": labels, "annotations": annotations}}


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
    ("labels", "annotations", "warnings"),
    [
        ({}, {}, []),
        (OWNED, {}, [IN_USE]),
        ({}, {"ironbell.dev/hold": "fan"}, [HELD]),
        (OWNED, {"ironbell.dev/hold": "fan"}, [IN_USE, HELD]),
        (OWNED, {"clusterctl.cluster.x-k8s.io/delete-for-move": ""}, []),
    ],
)
async def test_the_deletion_of_a_server_in_use_or_held_warns(
    way: Any, labels: dict[str, str], annotations: dict[str, str], warnings: list[str]
) -> None:
    assert await way(hardware(labels, annotations)) == warnings


def test_deletions_are_sent_to_the_webhook_whatever_the_spec_is() -> None:
    (made,) = configuration(InstallOptions(image="i"))
    entry = next(one for one in made["webhooks"] if one["clientConfig"]["service"]["path"] == DELETION_PATH)
    assert entry["rules"][0]["operations"] == ["DELETE"]
    assert entry["rules"][0]["resources"] == ["hardware"]
    assert [match["name"] for match in entry["matchConditions"]] == ["by-others"]
    assert entry["failurePolicy"] == "Ignore"
    assert len({one["name"] for one in made["webhooks"]}) == len(made["webhooks"])
