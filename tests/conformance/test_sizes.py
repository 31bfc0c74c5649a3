"""How large an object may be."""

from __future__ import annotations

import pytest

from support.api.kubeapi import KubeApi
from support.api.kubeobjects import config_map, refusal, secret, thing

LARGE, TOO_LARGE = 1_560_000, 1_580_000
"""Below and above etcd's 1.5 MiB."""


def test_an_object_of_a_megabyte_and_a_half_is_stored(api: KubeApi, things: str) -> None:
    made = api.made(things, thing(spec={"free": {"x": "y" * LARGE}}))
    assert api.get(f"{things}/one").json == made


def test_escapes_do_not_make_an_object_larger(api: KubeApi, config_maps: str) -> None:
    value = "\n" * 1_000_000
    assert api.made(config_maps, config_map(data={"x": value}))["data"]["x"] == value


def test_nor_does_base64(api: KubeApi, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    assert api.made(path, secret(data={"x": "eHh4" * 340_000}))["data"]["x"] == "eHh4" * 340_000


@pytest.mark.parametrize("verb", ["create", "patch"])
def test_a_larger_object_is_refused(api: KubeApi, things: str, verb: str) -> None:
    content = {"spec": {"free": {"x": "y" * TOO_LARGE}}}
    if verb == "create":
        answer = api.post(things, thing(**content))
    else:
        before = api.made(things, thing())
        answer = api.patch(f"{things}/one", content)
        assert api.get(f"{things}/one").json == before
    status, _, message = refusal(answer)
    assert status in {413, 500}, "the embedded API says that it is the client's fault"
    assert "too large" in message
