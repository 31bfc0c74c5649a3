from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.connection import Connection, SecretReference
from ironbell.api.bmc.machine import PowerState
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.bmc.driver import AuthenticationError, BmcError, BmcProblem, UnreachableError
from ironbell.controllers.rufio import bmc_access
from ironbell.controllers.rufio.bmc_access import BmcAccess
from ironbell.controllers.rufio.operation import Operation, SetPower
from ironbell.controllers.rufio.secret import Credentials, read_credentials
from ironbell.controllers.rufio.target import Target
from ironbell.kube.testing import MemoryApi
from ironbell.provisioner.bmc_address import Pin
from support.waiting import until

ON = SetPower(PowerAction.ON)


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def target(host: str = "10.0.0.1", secrets: tuple[str, ...] = ("1",)) -> Target:
    connection = Connection(host=host, auth_secret_ref=SecretReference(name="s1"), insecure_tls=False)
    return Target("default", msgspec.json.encode(connection).decode(), secrets)


class FakeSession:
    """Counts what happens to it."""

    def __init__(self, site: Site, credentials: Credentials) -> None:
        self.site = site
        self.credentials = credentials
        self.closed = False

    async def power_state(self) -> PowerState:
        self.site.at_work += 1
        self.site.most_at_work = max(self.site.most_at_work, self.site.at_work)
        try:
            await self.site.answer(self)
        finally:
            self.site.at_work -= 1
        return PowerState.ON

    async def operate(self, operation: Operation) -> None:
        await self.site.answer(self)

    async def inventory(self) -> Inventory:
        await self.site.answer(self)
        return Inventory()

    async def close(self) -> None:
        self.closed = True


async def at_once(_session: FakeSession) -> None:
    await asyncio.sleep(0)


class Site:
    """All BMCs."""

    def __init__(self) -> None:
        self.sessions: list[FakeSession] = []
        self.answer: Callable[[FakeSession], Any] = at_once
        self.at_work = 0
        self.most_at_work = 0

    async def connect(self, connection: Connection, credentials: Credentials) -> FakeSession:
        session = FakeSession(self, credentials)
        self.sessions.append(session)
        return session


async def secrets(data: dict[str, str]) -> MemoryApi:
    api = MemoryApi()
    api.serve([SECRET_METADATA])
    body = {"metadata": {"name": "s1", "namespace": "default"}, "data": data}
    await api.create(SECRET_METADATA.collection, "default", msgspec.json.encode(body))
    return api


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
async def access(site: Site) -> AsyncIterator[BmcAccess]:
    api = await secrets({"username": encoded("admin"), "password": encoded("pass word")})
    made = BmcAccess(api, site.connect, idle_s=60)
    yield made
    await made.close()


async def test_a_session_is_opened_once_and_kept(site: Site, access: BmcAccess) -> None:
    for _ in range(3):
        assert await access.power_state(target()) is PowerState.ON
    await access.operate(target(), ON)
    (session,) = site.sessions
    assert (session.credentials.username, session.credentials.password) == ("admin", "pass word")
    await access.close()
    assert session.closed


async def test_one_bmc_is_asked_one_question_at_a_time_and_two_are_asked_at_once(site: Site, access: BmcAccess) -> None:
    await asyncio.gather(*(access.power_state(target()) for _ in range(5)))
    assert (site.most_at_work, len(site.sessions)) == (1, 1)
    await asyncio.gather(*(access.power_state(target(f"10.0.0.{number}")) for number in range(5)))
    assert site.most_at_work == 5


async def test_a_changed_secret_or_connection_opens_a_new_session(site: Site, access: BmcAccess) -> None:
    await access.power_state(target())
    await access.power_state(target(secrets=("2",)))
    await asyncio.sleep(0)
    assert [session.closed for session in site.sessions] == [True, False]


async def test_a_session_that_expired_is_opened_anew_and_asked_again(site: Site, access: BmcAccess) -> None:
    await access.power_state(target())

    async def expired(session: FakeSession) -> None:
        if session is site.sessions[0]:
            raise AuthenticationError("session expired")

    site.answer = expired
    assert await access.power_state(target()) is PowerState.ON
    assert len(site.sessions) == 2


async def test_a_login_that_is_refused_is_not_tried_twice(site: Site, access: BmcAccess) -> None:
    async def refused(_session: FakeSession) -> None:
        raise AuthenticationError("wrong password")

    site.answer = refused
    with pytest.raises(BmcError, match="wrong password"):
        await access.power_state(target())
    assert len(site.sessions) == 1


async def test_after_trouble_the_session_is_dropped(site: Site, access: BmcAccess) -> None:
    async def broken(_session: FakeSession) -> None:
        raise UnreachableError("connection reset")

    site.answer = broken
    with pytest.raises(BmcError):
        await access.power_state(target())
    site.answer = at_once
    await access.power_state(target())
    assert [session.closed for session in site.sessions] == [True, False]


async def test_a_question_without_answer_is_unreachable_and_an_operation_unknown(
    site: Site, access: BmcAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(_session: FakeSession) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(bmc_access, "CALL_TIMEOUT_S", 0.01)
    site.answer = silent
    with pytest.raises(BmcError) as asked:
        await access.power_state(target())
    assert asked.value.problem is BmcProblem.UNREACHABLE
    with pytest.raises(BmcError) as sent:
        await access.operate(target(), ON)
    assert sent.value.problem is BmcProblem.OUTCOME_UNKNOWN


async def test_who_waits_too_long_for_a_busy_bmc_knows_that_nothing_was_sent(site: Site) -> None:
    access = BmcAccess(await secrets({"username": "", "password": ""}), site.connect, turn_s=0.01)
    release = asyncio.Event()

    async def slow(_session: FakeSession) -> None:
        await release.wait()

    site.answer = slow
    first = asyncio.create_task(access.power_state(target()))
    while not site.at_work:
        await asyncio.sleep(0)
    with pytest.raises(BmcError, match="busy") as late:
        await access.operate(target(), ON)
    assert late.value.problem is BmcProblem.UNREACHABLE
    release.set()
    assert await first is PowerState.ON
    await access.close()


async def test_a_cancelled_call_leaves_no_session_behind(site: Site, access: BmcAccess) -> None:
    async def silent(_session: FakeSession) -> None:
        await asyncio.Event().wait()

    site.answer = silent
    call = asyncio.create_task(access.power_state(target()))
    while not site.at_work:
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.sleep(0)
    assert site.sessions[0].closed


async def test_a_quiet_session_is_closed(site: Site) -> None:
    access = BmcAccess(await secrets({"username": "", "password": ""}), site.connect, idle_s=0.01)
    await access.power_state(target())
    await until(lambda: site.sessions[0].closed)
    await access.close()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "username and password"),
        ({"username": encoded("a")}, "lacks the key password"),
        ({"username": "%%", "password": ""}, "username is not valid base64"),
        ({"username": "", "password": b64encode(b"\xff").decode()}, "password is not valid base64"),
    ],
)
async def test_a_secret_that_cannot_be_used_is_named_without_its_contents(data: dict[str, str], words: str) -> None:
    with pytest.raises(BmcError) as error:
        await read_credentials(await secrets(data), target().connection, "default")
    assert error.value.problem is BmcProblem.CREDENTIALS
    assert words in error.value.message
    assert "default/s1" in error.value.message


async def test_a_secret_that_does_not_exist_is_named() -> None:
    api = MemoryApi()
    api.serve([SECRET_METADATA])
    with pytest.raises(BmcError, match="default/s1"):
        await read_credentials(api, target().connection, "default")


async def test_a_connection_without_secret_needs_none() -> None:
    connection = Connection(host="h", insecure_tls=True)
    assert await read_credentials(MemoryApi(), connection, "default") == Credentials()


async def test_the_authority_is_read_from_the_secret_and_nothing_shows_what_is_secret() -> None:
    data = {"username": encoded("admin"), "password": encoded("hunter2"), "ca.crt": encoded("PEM")}
    found = await read_credentials(await secrets(data), target().connection, "default")
    assert found.ca_certificate == "PEM"
    assert "hunter2" not in repr(found)
    assert "admin" not in repr(found)


def test_informers_never_see_the_contents_of_secrets() -> None:
    body = b'{"metadata": {"name": "s1"}, "data": {"password": "aHVudGVyMg=="}}'
    assert "aHVudGVyMg" not in repr(SECRET_METADATA.decode(body))


async def test_no_password_is_sent_to_an_address_that_is_not_recorded(site: Site, access: BmcAccess) -> None:
    await access.power_state(replace(target(), pin=Pin(("default", "s1"), ("10.0.0.1",))))
    with pytest.raises(BmcError, match="the password is not sent there") as found:
        await access.power_state(replace(target("10.0.0.66"), pin=Pin(("default", "s1"), ("10.0.0.1",))))
    assert found.value.problem is BmcProblem.ADDRESS
    assert len(site.sessions) == 1
