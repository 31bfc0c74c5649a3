"""Several replicas and one Secret: who renews, who is told, who serves what."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from ironbell.api.client import Answer, Call, NotFound, Verb
from ironbell.api.core import SECRET
from ironbell.api.kind import Kind
from ironbell.api.meta import Resource
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.app.admission.places import VALIDATING, Place
from ironbell.app.admission.reviews import hardware_review, template_review
from ironbell.app.admission.tls import WebhookTls
from ironbell.base.clock import ManualClock
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.kube.serving_certificates import AUTHORITY, CERTIFICATE, LIFETIME
from ironbell.kube.testing import MemoryApi

CONFIGURATION, SECRET_NAME = "ironbell-toys", "ironbell-toys-webhook-tls"
CLOCK = datetime(2026, 11, 21, tzinfo=UTC)


class Site:
    def __init__(self) -> None:
        self.clock = ManualClock(CLOCK)
        self.api = MemoryApi(clock=self.clock)
        group, plural = VALIDATING.group, VALIDATING.plural
        self.api.serve([SECRET, Kind(group, "v1", "Configuration", plural, Resource, namespaced=False)])

    async def configure(self) -> None:
        webhooks = [{"name": "a", "clientConfig": {}}, {"name": "b", "clientConfig": {"caBundle": "b2xk"}}]
        body = {"metadata": {"name": CONFIGURATION}, "webhooks": webhooks}
        await self.api.create(VALIDATING, "", msgspec.json.encode(body))

    def replica(self) -> WebhookTls:
        places = (Place(VALIDATING, CONFIGURATION),)
        return WebhookTls(self.api, "ns", ("x.ns.svc",), self.clock, SECRET_NAME, places)

    @property
    def data(self) -> dict[str, bytes]:
        found = self.api.objects[SECRET.collection]["ns", SECRET_NAME]["data"]
        return {name: base64.b64decode(value) for name, value in found.items()}

    @property
    def bundles(self) -> set[bytes]:
        found = self.api.objects[VALIDATING]["", CONFIGURATION]["webhooks"]
        return {base64.b64decode(webhook["clientConfig"]["caBundle"]) for webhook in found}


async def test_the_first_makes_what_the_others_take() -> None:
    site = Site()
    await site.configure()
    one, two = site.replica(), site.replica()
    await one.sync()
    data = site.data
    assert site.bundles == {data[AUTHORITY]}
    await two.sync()
    assert site.data == data
    assert one.is_loaded
    assert two.is_loaded


async def test_one_of_several_renews_and_all_serve_what_is_new() -> None:
    site = Site()
    await site.configure()
    one, two = site.replica(), site.replica()
    await one.sync()
    await two.sync()
    before = site.data[CERTIFICATE]
    site.clock.advance(LIFETIME.total_seconds() * 0.8)
    await two.sync()
    assert site.data[CERTIFICATE] != before
    writes = site.api.writes
    await one.sync()
    assert site.api.writes == writes
    assert one._serving == two._serving == site.data[CERTIFICATE]


async def test_who_loses_the_race_takes_the_winner_s() -> None:
    site = Site()
    await site.configure()
    one, two = site.replica(), site.replica()
    carry_out, races = site.api.call, 0

    async def overtaken(call: Call) -> Answer:
        nonlocal races
        if call.verb is Verb.CREATE:
            races += 1
            site.api.call = carry_out  # type: ignore[method-assign]
            await two.sync()
        return await carry_out(call)

    site.api.call = overtaken  # type: ignore[method-assign]
    await one.sync()
    assert races == 1
    assert one._serving == two._serving == site.data[CERTIFICATE]


async def test_the_configuration_is_told_before_anything_new_is_served() -> None:
    site = Site()
    one = site.replica()
    with pytest.raises(NotFound):
        await one.sync()
    assert not one.is_loaded
    await site.configure()
    await one.sync()
    assert one.is_loaded


async def test_a_template_that_does_not_parse_is_warned_of() -> None:
    async def parse(text: str, namespace: str) -> None:
        if namespace == "busy":
            raise IronbellError("others go first")
        if "{{" in text:
            raise IronbellError("line 2: unexpected end", retry=Retry.NEVER)

    review = template_review(parse)
    assert await review({"spec": {"data": "a\n{{"}}) == ["spec.data: line 2: unexpected end"]
    assert await review({"spec": {"data": "a"}}) == []
    assert await review({}) == []
    assert await review({"metadata": {"namespace": "busy"}, "spec": {"data": "a\n{{"}}) == []


async def test_a_mac_that_another_hardware_has_is_warned_of() -> None:
    def document(name: str, mac: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "ns"}
        return {"metadata": metadata, "spec": {"interfaces": [{"dhcp": {"mac": mac}}]}}

    directory = HardwareDirectory()
    directory.upsert(HARDWARE.decode(msgspec.json.encode(document("m1", "02:00:00:00:00:01"))))
    review = hardware_review(directory)
    (warning,) = await review(document("m2", "02-00-00-00-00-01"))
    assert "spec.interfaces[0].dhcp.mac" in warning
    assert "ns/m1" in warning
    assert await review(document("m1", "02:00:00:00:00:01")) == []
    assert await review(document("m2", "02:00:00:00:00:02")) == []
    assert await review({"spec": {"interfaces": 7}}) == []
