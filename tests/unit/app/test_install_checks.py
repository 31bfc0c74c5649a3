"""Where `ironbell install` refuses to begin."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from ironbell.apiserver.http.content.documents import version_info
from ironbell.app.install.apply import InstallError, check_pods_run
from ironbell.kube.transport.http import HttpApi


class Answering:
    """An API that answers one question."""

    def __init__(self, version: dict[str, str]) -> None:
        self.version = version

    async def raw(self, method: str, path: str, **_: Any) -> bytes:
        assert (method, path) == ("GET", "/version")
        return msgspec.json.encode(self.version)


async def test_an_api_that_runs_no_pods_is_named_with_the_remedy() -> None:
    with pytest.raises(InstallError, match="runs no pods: nothing that is installed here would start"):
        await check_pods_run(cast("HttpApi", Answering(version_info())))
    await check_pods_run(cast("HttpApi", Answering({"gitVersion": "v1.34.2"})))
    await check_pods_run(cast("HttpApi", Answering({})))
