"""What admission wants to see is read, waited for a little, and told apart from what is not there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.client import ApiError, Forbidden, ListOptions, NotFound, Page, TooManyRequests, Unavailable
from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS
from ironbell.api.kind import Collection
from ironbell.app.admission.lookups import Lookups
from ironbell.contract.admission_lookups import ListLookup, Lookup, ObjectLookup, ReferenceLookup

_ALL = ListOptions()
LABELS = {"cluster.x-k8s.io/v1beta2": "v1_v2"}
DEFINITION = {
    "metadata": {"name": "planes.hosts.test", "labels": LABELS},
    "spec": {"names": {"plural": "planes"}},
}


class _Api:
    """Objects by collection and name; each read is noted."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), list[tuple[Collection, str, str]]()

    async def get(self, where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes:
        self.asked.append((where, namespace, name))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return msgspec.json.encode(answer)

    async def list(self, where: Collection, namespace: str = "", options: ListOptions = _ALL) -> Page:
        self.asked.append((where, namespace, options.selector.labels))
        if isinstance(self.answers[0], Exception):
            raise self.answers.pop(0)
        return Page([msgspec.json.encode(one) for one in self.answers], "1")


def _is_ready(body: dict[str, Any]) -> bool:
    return bool(body.get("ready"))


async def test_an_object_is_waited_for() -> None:
    api = _Api(NotFound("no"), {"ready": False}, {"ready": True})
    wanted = ObjectLookup(CLUSTER_CLASS, "n", "small", until=_is_ready)
    found = await Lookups(api, patience_s=20).find([wanted])
    assert found.get(wanted) == {"ready": True}
    assert len(api.asked) == 3


@pytest.mark.parametrize("answer", [{"ready": False}, None])
async def test_after_a_while_what_there_is_will_do(answer: Any) -> None:
    wanted = ObjectLookup(CLUSTER_CLASS, "n", "small", until=_is_ready)
    found = await Lookups(_Api(answer or NotFound("no")), patience_s=0).find([wanted])
    assert found.get(wanted) == answer


async def test_a_reference_is_read_in_the_newest_version_of_its_contract() -> None:
    api = _Api(DEFINITION, {"kind": "Plane"})
    wanted = ReferenceLookup("hosts.test", "Plane", "n", "p")
    assert (await Lookups(api).find([wanted])).get(wanted) == {"kind": "Plane"}
    where, namespace, name = api.asked[-1]
    assert (where.api_version, where.plural, namespace, name) == ("hosts.test/v2", "planes", "n", "p")


async def test_a_list_is_asked_for_by_labels() -> None:
    api = _Api({"a": 1}, {"a": 2})
    wanted = ListLookup(CLUSTER, "n", "a=b")
    assert [one["a"] for one in (await Lookups(api).find([wanted])).all(wanted)] == [1, 2]
    assert api.asked == [(CLUSTER.collection, "n", "a=b")]


async def test_a_refusal_says_what_could_not_be_read() -> None:
    wanted = ObjectLookup(CLUSTER_CLASS, "n", "small")
    with pytest.raises(ApiError, match="ClusterClass n/small could not be looked up: not for you") as caught:
        await Lookups(_Api(Forbidden("not for you"))).find([wanted])
    assert caught.value.code == 403


@pytest.mark.parametrize(
    "wanted", [ObjectLookup(CLUSTER_CLASS, "n", "small"), ListLookup(CLUSTER, "n", "a=b")], ids=["one", "several"]
)
async def test_what_cannot_be_read_for_a_moment_is_read_again(wanted: Lookup) -> None:
    api = _Api(TooManyRequests("storage is (re)initializing"), Unavailable("the connection was closed"), {"a": 1})
    assert list((await Lookups(api, patience_s=20).find([wanted])).all(wanted)) == [{"a": 1}]
    assert len(api.asked) == 3


async def test_a_server_that_goes_on_failing_is_asked_for_a_while_only() -> None:
    api = _Api(Unavailable("the connection was closed"))
    with pytest.raises(ApiError, match="ClusterClass n/small could not be looked up: the connection was closed"):
        await Lookups(api, patience_s=0.15).find([ObjectLookup(CLUSTER_CLASS, "n", "small")])
    assert len(api.asked) > 1
