"""Bootstrap data equals upstream's byte for byte, over specs with every field of the API."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from ironbell.contract.cluster_secrets import Purpose
from ironbell.contract.pki import KeyPair
from ironbell.controllers.kubeadm.config.files import plain_file
from ironbell.controllers.kubeadm.config.kubeadm import ClusterFacts
from ironbell.controllers.kubeadm.config.rendering import Inputs, bootstrap_data
from ironbell.controllers.kubeadm.config.userdata import Role
from support.bootstrapspecs import CERTIFICATES, request

CASES = 400
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
