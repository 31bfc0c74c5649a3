"""What is secret is never part of a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.client import ApiError, PatchType

SECRET_TEXT = "hunter2 hunter2"


@pytest.mark.parametrize(
    ("patch", "kind"),
    [
        ({"data": {"password": SECRET_TEXT}}, PatchType.MERGE),
        ({"data": {"a b": SECRET_TEXT}}, PatchType.STRATEGIC),
        ([{"op": "test", "path": "/data/password", "value": SECRET_TEXT}], PatchType.JSON),
        ([{"op": "replace", "path": "/data", "value": SECRET_TEXT}], PatchType.JSON),
        ({"data": {"password": SECRET_TEXT}}, PatchType.APPLY),
        ({"stringData": {"a b": SECRET_TEXT}}, PatchType.MERGE),
    ],
)
async def test_refusals_of_secrets_do_not_show_them(admin: Any, secrets: Any, patch: Any, kind: PatchType) -> None:
    await admin.create(secrets, {"metadata": {"name": "s"}, "stringData": {"password": "pa55word"}})
    with pytest.raises(ApiError) as raised:
        await admin.patch(secrets, "s", patch, kind=kind, manager="me")
    shown = f"{raised.value.message} {raised.value.details}"
    assert "hunter2" not in shown
    assert "cGE1NXdvcmQ" not in shown
