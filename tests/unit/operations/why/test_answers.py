"""Answers to why an object waits, as any front end gets them."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api import cluster
from ironbell.operations.why.answers import NoMatchingObjectError, answers
from support.servers.whyworld import CLUSTER, KCP, PLANE, Objects, host, machine


def site(**more: Any) -> Any:
    waits = host("m", "WaitingForHardware", "all 12 Hardware are claimed")
    return Objects(CLUSTER, KCP, machine("m", PLANE, "WaitingForHardware"), waits, **more)


async def test_the_object_that_blocks_is_named_and_what_is_related_is_read_on_request() -> None:
    (answer,) = await answers(site(), [cluster.MACHINE], "site", "m")
    assert answer.diagnosis.blocking.title == "TinkerbellMachine site/m"
    assert answer.related == ()
    (answer,) = await answers(site(absent=["Event"]), [cluster.MACHINE], "site", "m", wide=True)
    assert [part.about for part in answer.related][:2] == ["Machine site/m", "TinkerbellMachine site/m"]


async def test_a_bare_name_means_the_first_kind_and_mentions_the_others() -> None:
    (answer,) = await answers(site(), [cluster.CLUSTER, cluster.MACHINE], "site", "m", bare=True)
    assert (answer.diagnosis.object.kind, answer.also) == ("Machine", ())


async def test_an_object_that_does_not_exist_is_an_error_with_its_name() -> None:
    with pytest.raises(NoMatchingObjectError) as error:
        await answers(site(), [cluster.CLUSTER], "site", "two")
    assert (error.value.namespace, error.value.name) == ("site", "two")
