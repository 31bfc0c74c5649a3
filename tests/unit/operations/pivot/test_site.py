"""What one side does with an API that stammers, refuses, or has somebody else at work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ironbell.api.client import AlreadyExists, ApiError, Conflict, Invalid, NotFound, Unavailable
from ironbell.api.kind import Collection
from ironbell.operations.pivot import site as module
from ironbell.operations.pivot.items import MovedKind
from ironbell.operations.pivot.site import ChangedError, Site, SiteError

KIND = MovedKind("x.io", "v1", "Thing", "things")


class OneObject:
    """An API with one object; `meddle` is called after each patch, `trouble` is raised by the next calls."""

    def __init__(self, *trouble: ApiError, meddle: Callable[[dict[str, Any]], None] = lambda _meta: None) -> None:
        self.meta: dict[str, Any] | None = {"name": "a", "namespace": "n", "uid": "1", "resourceVersion": "1"}
        self.deletions = 0
        self.seen_deleting = False
        self._trouble, self._meddle = list(trouble), meddle

    def _found(self) -> dict[str, Any]:
        if self._trouble:
            raise self._trouble.pop(0)
        if self.meta is None:
            raise NotFound("things 'a' not found")
        return self.meta

    async def get(self, _where: Collection, _namespace: str, _name: str) -> bytes:
        return msgspec.json.encode({"metadata": self._found()})

    async def patch(self, _where: Collection, _namespace: str, _name: str, body: bytes, **_options: Any) -> bytes:
        meta, change = self._found(), msgspec.json.decode(body)["metadata"]
        if change["resourceVersion"] != meta["resourceVersion"]:
            raise Conflict("changed")
        meta.pop("finalizers", None)
        meta["annotations"] = change["annotations"]
        meta["resourceVersion"] += "1"
        if meta.get("deletionTimestamp"):
            self.meta = None
        else:
            self._meddle(meta)
        return b"{}"

    async def delete(self, _where: Collection, _namespace: str, _name: str, **_options: Any) -> bytes:
        meta = self._found()
        self.deletions += 1
        if meta.get("finalizers"):
            meta["deletionTimestamp"], self.seen_deleting = "now", True
        else:
            self.meta = None
        return b"{}"

    async def create(self, *_arguments: Any) -> bytes:
        raise self._trouble.pop(0)


def site(api: OneObject) -> Site:
    return Site(api, "target")  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE_S", 0.0)


async def test_what_goes_is_never_seen_as_one_that_is_being_deleted() -> None:
    api = OneObject()
    assert api.meta is not None
    api.meta["finalizers"] = ["f"]
    await site(api).remove(KIND, "n", "a", "1")
    assert (api.meta, api.deletions, api.seen_deleting) == (None, 1, False)


async def test_finalizers_that_come_back_are_taken_again() -> None:
    back = [["f"]]

    def meddle(meta: dict[str, Any]) -> None:
        if back:
            meta["finalizers"] = back.pop()

    api = OneObject(meddle=meddle)
    await site(api).remove(KIND, "n", "a", "1")
    assert api.meta is None


async def test_finalizers_that_always_come_back_are_named() -> None:
    def meddle(meta: dict[str, Any]) -> None:
        meta["finalizers"] = ["f"]
        meta["resourceVersion"] += "1"

    api = OneObject(meddle=meddle)
    api.delete = lambda *_arguments, **_options: _conflict()  # type: ignore[method-assign]
    with pytest.raises(SiteError, match=r"Thing\.x\.io n/a cannot be removed from the target: .* stop its provider's"):
        await site(api).remove(KIND, "n", "a", "1")


async def _conflict() -> bytes:
    raise Conflict("changed")


async def test_another_object_of_the_name_is_left_alone() -> None:
    api = OneObject()
    await site(api).remove(KIND, "n", "a", "another")
    assert (api.deletions, api.meta is None) == (0, False)


async def test_an_api_that_stammers_is_asked_again_and_one_that_is_away_is_named() -> None:
    found = await site(OneObject(*[Unavailable("away")] * 3)).find(KIND, "n", "a")
    assert found is not None
    with pytest.raises(SiteError, match="on the target: away; run the same command again when it answers"):
        await site(OneObject(*[Unavailable("away")] * 20)).find(KIND, "n", "a")


async def test_a_refusal_names_the_object_and_what_can_be_done() -> None:
    body = {"metadata": {"name": "a", "namespace": "n"}}
    with pytest.raises(
        SiteError, match=r"Thing\.x\.io n/a on the target: spec\.a: wrong; nothing is lost: correct that"
    ):
        await site(OneObject(Invalid("spec.a: wrong"))).create(KIND, body)
    with pytest.raises(ChangedError):
        await site(OneObject(AlreadyExists("there"))).create(KIND, body)
