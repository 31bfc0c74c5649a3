"""What a process says about itself."""

from __future__ import annotations

import aiohttp
import pytest

from ironbell.api.client import Unavailable
from ironbell.app.processes.health import AddressError, ApiReachable, read_address, serving_health
from ironbell.base.clock import ManualClock


async def get(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


async def test_ready_names_what_is_not() -> None:
    why = "caches are being filled"

    async def check() -> str:
        return why

    async def good() -> str:
        return ""

    async with serving_health("127.0.0.1:0", {"api": good, "rufio": check}) as port:
        assert await get(port, "/readyz") == (503, "[+]api ok\n[-]rufio failed: caches are being filled\n")
        assert await get(port, "/healthz") == (200, "ok")
        why = ""
        assert (await get(port, "/readyz"))[0] == 200


async def test_the_api_is_asked_now_and_then_however_often_we_are() -> None:
    class Api:
        asked = 0

        async def raw(self, *_args: object, **_more: object) -> bytes:
            self.asked += 1
            if self.asked > 1:
                raise Unavailable("gone")
            return b"ok"

    api, clock = Api(), ManualClock()
    reachable = ApiReachable(api, clock)  # type: ignore[arg-type]
    assert [await reachable(), await reachable()] == ["", ""]
    clock.advance(5)
    assert [await reachable(), await reachable()] == ["gone", "gone"]
    assert api.asked == 2


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:1", ("127.0.0.1", 1)), (":80", ("0.0.0.0", 80)), ("[::1]:8081", ("::1", 8081))],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert read_address(text) == address


@pytest.mark.parametrize("text", ["", "8081", "host:80", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:x"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(AddressError, match="ADDRESS:PORT"):
        read_address(text)
