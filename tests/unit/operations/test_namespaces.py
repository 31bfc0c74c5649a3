"""What somebody is told who looked in the wrong namespace."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.client import Forbidden, NotFound
from ironbell.api.tinkerbell import HARDWARE
from ironbell.operations.namespaces import elsewhere, get_or_hint, namespaces_hint, no_objects_message


class Page:
    """A page of a list."""

    def __init__(self, *keys: tuple[str, str]) -> None:
        metadata = [{"metadata": {"namespace": space, "name": name}} for space, name in keys]
        self.items = [msgspec.json.encode(one) for one in metadata]


class FakeApi:
    """An API with servers in two namespaces."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses

    async def get(self, where: Any, _namespace: str, name: str) -> bytes:
        if where.plural != "namespaces" or name not in ("default", "rack-1", "rack-2"):
            raise NotFound(f'{where.plural} "{name}" not found')
        return b"{}"

    async def list(self, *_: object) -> Page:
        if self.refuses:
            raise Forbidden("no")
        return Page(("rack-1", "a"), ("rack-1", "b"), ("rack-2", "a"))


@pytest.mark.parametrize(
    ("namespace", "name", "expected"),
    [
        ("default", "", "Namespaces that have some: rack-1 (2), rack-2 (1). Use -n to select one, or -A for all."),
        (
            "x",
            "",
            'Namespace "x" does not exist. Namespaces that have some: rack-1 (2), rack-2 (1). Use -n to select one, ',
        ),
        ("default", "b", "Namespace rack-1 has an object of that name: use -n rack-1."),
        ("default", "a", "Namespaces rack-1, rack-2 have an object of that name: use -n rack-1."),
        ("x", "c", 'Namespace "x" does not exist.'),
        ("default", "c", ""),
        ("", "c", ""),
    ],
)
async def test_it_is_said_where_objects_are(namespace: str, name: str, expected: str) -> None:
    found = await elsewhere(FakeApi(), HARDWARE.collection, namespace, name)  # type: ignore[arg-type]
    assert found.startswith(expected)
    assert bool(found) is bool(expected)


async def test_nothing_is_said_where_it_cannot_be_known() -> None:
    assert await elsewhere(FakeApi(refuses=True), HARDWARE.collection, "default") == ""  # type: ignore[arg-type]


async def test_an_object_that_is_missing_is_named_with_where_it_is() -> None:
    with pytest.raises(NotFound) as problem:
        await get_or_hint(FakeApi(), HARDWARE, "default", "b")  # type: ignore[arg-type]
    assert str(problem.value) == 'hardware "b" not found. Namespace rack-1 has an object of that name: use -n rack-1.'


def test_many_namespaces_are_counted() -> None:
    text = namespaces_hint("x", {f"n{number:02}": 1 for number in range(12)})
    assert text.count("(1)") == 8
    assert "n07 (1) and 4 more. Use -n" in text


async def test_nothing_to_act_on_is_reported_with_where_there_is_something() -> None:
    first = await no_objects_message(FakeApi(), HARDWARE.collection, "default", "Hardware")  # type: ignore[arg-type]
    second = await no_objects_message(FakeApi(), HARDWARE.collection, "", "Hardware")  # type: ignore[arg-type]
    assert first.startswith('There is no Hardware in namespace "default". Namespaces that have some: rack-1 (2), ')
    assert second == "There is no Hardware."
