"""Bootstrap data equals upstream's byte for byte, over specs with every field of the API."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from ironbell.contract.clusters.secrets import Purpose
from ironbell.contract.pki import KeyPair
from ironbell.controllers.kubeadm.config.rendering.files import plain_file
from ironbell.controllers.kubeadm.config.rendering.kubeadm import ClusterFacts
from ironbell.controllers.kubeadm.config.rendering.render import Inputs, bootstrap_data
from ironbell.controllers.kubeadm.config.rendering.userdata import Role
from support.kubeadm.bootstrapspecs import CERTIFICATES, request

CASES = 250
PAIRS = {
    Purpose(purpose): KeyPair(pair["certificate"].encode(), pair["key"].encode())
    for purpose, pair in CERTIFICATES.items()
}
_PLACEHOLDER = re.compile(r'(?<=    content: )"[^"]*placeholder[^"]*"|(?<=    content: )"Makes the folder[^"]*"')


def ours(asked: dict[str, Any]) -> str:
    spec = asked["spec"]
    version = tuple(int(part) for part in asked["version"].removeprefix("v").partition("-")[0].split("."))
    return bootstrap_data(
        Inputs(
            Role(asked["role"]),
            spec,
            version,
            ClusterFacts(**asked["facts"]),
            files=[plain_file(file) for file in spec.get("files", [])],
            users=spec.get("users", []),
            pairs=PAIRS,
        )
    )


def comparable(data: str) -> str:
    """Without the sentence in a file that nobody reads, which is in our own words."""
    return _PLACEHOLDER.sub('"..."', data)


@pytest.mark.parametrize("role", ["init", "control plane", "worker"])
def test_cloud_config(oracle: Callable[..., Any], role: str) -> None:
    requests = [request(seed, role=role) for seed in range(CASES)]
    for asked, answer in zip(requests, oracle(requests), strict=True):
        assert answer.error == "", asked
        assert comparable(ours(asked)) == comparable(answer.data), asked


_DATA = "data:,"
_COMMENT = re.compile(r"[ \t]*#(?!!).*$", re.MULTILINE)


def plain(value: Any) -> Any:
    """Without the comments that upstream has in the files and units it makes, and ours have not."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if not isinstance(value, str) or "\n" not in (text := unquote(value.removeprefix(_DATA))):
        return value
    return [line for line in _COMMENT.sub("", text).splitlines() if line]


@pytest.mark.parametrize("role", ["init", "control plane", "worker"])
def test_ignition(oracle: Callable[..., Any], role: str) -> None:
    requests = [request(seed, role=role, format="ignition") for seed in range(CASES // 4)]
    for asked, answer in zip(requests, oracle(requests), strict=True):
        assert answer.error == "", asked
        assert plain(msgspec.json.decode(ours(asked))) == plain(msgspec.json.decode(answer.data)), asked
