"""The Redfish driver against a service that behaves, and one that does not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.machine import PowerState
from ironbell.bmc.driver import (
    AuthenticationError,
    BmcError,
    BusyError,
    MalformedResponseError,
    OutcomeUnknownError,
    RejectedError,
    UnreachableError,
    UnsupportedError,
    UntrustedCertificateError,
)
from ironbell.bmc.redfish import RedfishDriver, RedfishTarget, connect
from ironbell.bmc.redfish import http as redfish_http

SYSTEM = "/redfish/v1/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
SESSIONS = "/redfish/v1/Sessions"
SLOT = "/redfish/v1/Managers/1/VirtualMedia/Cd"
Service = Any


@asynccontextmanager
async def _driver(target: RedfishTarget) -> AsyncIterator[RedfishDriver]:
    driver = await connect(target)
    try:
        yield driver
    finally:
        await driver.close()


def _status(status: int, body: str = "{}") -> Callable[[], Awaitable[web.StreamResponse]]:
    async def answer() -> web.StreamResponse:
        return web.Response(status=status, text=body, content_type="application/json")

    return answer


async def _never() -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def test_one_session_is_opened_and_closed(service: Service) -> None:
    async with _driver(service.target()) as driver:
        assert await driver.power_state() is PowerState.OFF
        await driver.set_power(PowerAction.ON)
        assert await driver.power_state() is PowerState.ON
        assert len(service.sessions) == 1
    assert (service.opened, service.sessions) == (1, set())


async def test_a_service_without_sessions_gets_basic_authentication(service: Service) -> None:
    service.has_sessions = False
    async with _driver(service.target()) as driver:
        assert await driver.power_state() is PowerState.OFF


async def test_a_service_that_names_no_sessions_gets_basic_authentication(service: Service) -> None:
    del service.documents["/redfish/v1/"]["Links"]
    async with _driver(service.target()) as driver:
        assert await driver.power_state() is PowerState.OFF
    assert not any(method == "POST" for method, _, _ in service.requests)


async def test_a_service_that_has_no_room_for_a_session_gets_basic_authentication(service: Service) -> None:
    service.fail(SESSIONS, _status(400, '{"error": {"message": "session limit exceeded"}}'))
    async with _driver(service.target()) as driver:
        assert await driver.power_state() is PowerState.OFF


async def test_a_session_that_the_service_forgot_is_opened_again(service: Service) -> None:
    async with _driver(service.target()) as driver:
        service.sessions.clear()
        await driver.set_power(PowerAction.ON)
    assert (service.opened, service.resets) == (2, ["On"])


@pytest.mark.parametrize(
    ("state", "command", "resets"),
    [
        ("Off", PowerAction.ON, ["On"]),
        ("On", PowerAction.ON, []),
        ("PoweringOn", PowerAction.ON, ["On"]),
        ("On", PowerAction.OFF, ["ForceOff"]),
        ("Off", PowerAction.OFF, []),
        ("On", PowerAction.SOFT, ["GracefulShutdown"]),
        ("Off", PowerAction.SOFT, []),
        ("On", PowerAction.CYCLE, ["ForceRestart"]),
        ("On", PowerAction.RESET, ["ForceRestart"]),
    ],
)
async def test_power_commands_send_one_reset_or_none(
    service: Service, state: str, command: PowerAction, resets: list[str]
) -> None:
    service.system["PowerState"] = state
    async with _driver(service.target()) as driver:
        await driver.set_power(command)
    assert service.resets == resets


async def test_only_reset_types_that_the_service_knows_are_sent(service: Service) -> None:
    action = service.system["Actions"]["#ComputerSystem.Reset"]
    service.system["PowerState"] = "On"
    action["ResetType@Redfish.AllowableValues"] = ["On", "PushPowerButton"]
    async with _driver(service.target()) as driver:
        await driver.set_power(PowerAction.SOFT)
        for command in (PowerAction.OFF, PowerAction.STATUS):
            with pytest.raises(UnsupportedError, match="only On, PushPowerButton"):
                await driver.set_power(command)
    assert service.resets == ["PushPowerButton"]


async def test_allowable_values_may_be_at_the_action_info_or_nowhere(service: Service) -> None:
    action = service.system["Actions"]["#ComputerSystem.Reset"]
    service.system["PowerState"] = "On"
    del action["ResetType@Redfish.AllowableValues"]
    async with _driver(service.target()) as driver:
        await driver.set_power(PowerAction.CYCLE)
        action["@Redfish.ActionInfo"] = "/redfish/v1/Systems/1/ResetActionInfo"
        values = {"Parameters": [{"Name": "ResetType", "AllowableValues": ["PowerCycle"]}]}
        service.documents["/redfish/v1/Systems/1/ResetActionInfo"] = values
        await driver.set_power(PowerAction.CYCLE)
    assert service.resets == ["ForceRestart", "PowerCycle"]


async def test_a_system_without_reset_action_is_said_so(service: Service) -> None:
    service.system["Actions"] = {}
    async with _driver(service.target()) as driver:
        with pytest.raises(UnsupportedError, match="has no reset action"):
            await driver.set_power(PowerAction.ON)


async def test_a_refusal_of_what_is_so_already_is_success(service: Service) -> None:
    async def refuse() -> web.StreamResponse:
        service.system["PowerState"] = "On"
        return web.Response(status=409, text="{}", content_type="application/json")

    service.fail(RESET, refuse)
    async with _driver(service.target()) as driver:
        await driver.set_power(PowerAction.ON)


@pytest.mark.parametrize(
    ("persistent", "efi", "wanted"),
    [(False, True, ("Once", "UEFI")), (True, False, ("Continuous", "Legacy"))],
)
async def test_the_boot_device_is_set_with_mode(
    service: Service, persistent: bool, efi: bool, wanted: tuple[str, str]
) -> None:
    async with _driver(service.target()) as driver:
        await driver.set_boot_device("pxe", persistent=persistent, efi=efi)
    boot = service.system["Boot"]
    assert boot["BootSourceOverrideTarget"] == "Pxe"
    assert (boot["BootSourceOverrideEnabled"], boot["BootSourceOverrideMode"]) == wanted


async def test_a_service_that_refuses_the_mode_is_asked_without_it(service: Service) -> None:
    service.fail(SYSTEM, _status(400), method="PATCH")
    async with _driver(service.target()) as driver:
        await driver.set_boot_device("disk", persistent=True, efi=True)
    assert service.system["Boot"] == {"BootSourceOverrideTarget": "Hdd", "BootSourceOverrideEnabled": "Continuous"}


async def test_changes_may_be_taken_at_the_settings_resource_only(service: Service) -> None:
    settings = f"{SYSTEM}/Settings"
    service.system["@Redfish.Settings"] = {"SettingsObject": {"@odata.id": settings}}
    service.documents[settings] = {}
    service.fail(SYSTEM, _status(405), method="PATCH", times=9)
    async with _driver(service.target()) as driver:
        await driver.set_boot_device("cdrom", persistent=False, efi=True)
    assert service.documents[settings]["Boot"]["BootSourceOverrideTarget"] == "Cd"


async def test_an_etag_that_the_service_does_not_match_is_left_out(service: Service) -> None:
    service.system["@odata.etag"] = 'W/"1"'
    service.fail(SYSTEM, _status(412), method="PATCH")
    async with _driver(service.target()) as driver:
        await driver.set_boot_device("pxe", persistent=False, efi=True)
    assert service.system["Boot"]["BootSourceOverrideTarget"] == "Pxe"


async def test_boot_devices_that_nobody_knows_are_refused(service: Service) -> None:
    service.system["Boot"]["BootSourceOverrideTarget@Redfish.AllowableValues"] = ["None", "Hdd"]
    async with _driver(service.target()) as driver:
        with pytest.raises(UnsupportedError, match="only Hdd, None"):
            await driver.set_boot_device("pxe", persistent=False, efi=True)
        with pytest.raises(UnsupportedError, match="boot device 'safe' is not valid"):
            await driver.set_boot_device("safe", persistent=False, efi=True)


async def test_media_are_replaced_and_ejected(service: Service) -> None:
    async with _driver(service.target()) as driver:
        await driver.insert_media("http://10.0.0.1/a.iso", kind="CD")
        await driver.insert_media("http://10.0.0.1/b.iso", kind="CD")
        assert service.documents[SLOT]["Image"] == "http://10.0.0.1/b.iso"
        await driver.eject_media(kind="CD")
        await driver.eject_media(kind="CD")
    assert service.documents[SLOT]["Inserted"] is False
    names = [
        path.rpartition(".")[2] for method, path, _ in service.requests if path.startswith(SLOT) and method == "POST"
    ]
    assert names == ["InsertMedia", "EjectMedia", "InsertMedia", "EjectMedia"]


async def test_a_slot_without_actions_is_changed_itself(service: Service) -> None:
    service.documents[SLOT]["Actions"] = {}
    async with _driver(service.target()) as driver:
        await driver.insert_media("http://10.0.0.1/a.iso", kind="CD")
        assert service.documents[SLOT]["Inserted"] is True
        await driver.eject_media(kind="CD")
    assert service.documents[SLOT]["Inserted"] is False


async def test_a_service_with_several_systems_needs_a_name(service: Service) -> None:
    other = "/redfish/v1/Systems/2"
    service.documents["/redfish/v1/Systems"]["Members"].append({"@odata.id": other})
    service.documents[other] = {**service.system, "Name": "other", "PowerState": "On"}
    with pytest.raises(RejectedError, match=r"set redfish\.systemName"):
        await connect(service.target())
    async with _driver(service.target(name="other")) as driver:
        assert await driver.power_state() is PowerState.ON
    with pytest.raises(RejectedError, match="there are node, other"):
        await connect(service.target(name="third"))
    assert service.sessions == set()


async def test_certificates_are_verified_unless_told_otherwise(service: Service) -> None:
    with pytest.raises(UntrustedCertificateError):
        await connect(service.target(authority=False))
    assert service.requests == []
    async with _driver(service.target(authority=False, insecure=True)) as driver:
        assert await driver.power_state() is PowerState.OFF


async def test_a_wrong_password_is_no_reason_to_try_again(service: Service) -> None:
    with pytest.raises(AuthenticationError) as caught:
        await connect(service.target(password="hunter2"))
    assert "hunter2" not in str(caught.value)
    assert sum(path == SESSIONS for _, path, _ in service.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 503])
async def test_a_service_that_repeats_the_password_is_not_quoted(service: Service, status: int) -> None:
    said = {"error": {"message": "The value 'hunter2' for the property Password has another format."}}
    service.fail(SESSIONS, _status(status, msgspec.json.encode(said).decode()))
    with pytest.raises(BmcError) as caught:
        await connect(service.target(password="hunter2"))
    shown, error = [], caught.value
    while error is not None:
        shown.append(str(error))
        error = error.__cause__ or error.__context__
    assert "hunter2" not in " ".join(shown)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (_status(503), BusyError),
        (_status(429), BusyError),
        (_status(500), BusyError),
        (_status(403), RejectedError),
        (_status(404), UnsupportedError),
        (_status(200, "<html>"), MalformedResponseError),
        (_status(200, "[1]"), MalformedResponseError),
        (_status(200, "[" * 100_000), MalformedResponseError),
        (_status(200, '{"a": "' + "x" * (5 << 20) + '"}'), MalformedResponseError),
        (_status(301), MalformedResponseError),
    ],
    ids=["503", "429", "500", "403", "404", "html", "list", "nested", "huge", "redirect"],
)
async def test_faults_are_sorted_by_meaning(
    service: Service, fault: Callable[[], Awaitable[web.StreamResponse]], error: type[BmcError]
) -> None:
    async with _driver(service.target()) as driver:
        service.fail(SYSTEM, fault)
        with pytest.raises(error):
            await driver.power_state()
        assert await driver.power_state() is PowerState.OFF


async def test_a_change_that_ends_in_a_server_error_may_have_happened(service: Service) -> None:
    service.fail(RESET, _status(500))
    async with _driver(service.target()) as driver:
        with pytest.raises(OutcomeUnknownError):
            await driver.set_power(PowerAction.ON)


async def test_the_services_own_words_are_in_the_message(service: Service) -> None:
    said = {"error": {"message": "general", "@Message.ExtendedInfo": [
        {"Message": "fine"}, {"Message": "The fan\nis broken.", "Severity": "Critical"}]}}  # fmt: skip
    service.fail(RESET, _status(400, msgspec.json.encode(said).decode()))
    async with _driver(service.target()) as driver:
        with pytest.raises(RejectedError, match=r"The fan is broken\."):
            await driver.set_power(PowerAction.ON)


async def test_a_service_that_never_answers_is_given_up(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redfish_http, "REQUEST_TIMEOUT_S", 0.3)
    async with _driver(service.target()) as driver:
        service.fail(SYSTEM, _never)
        with pytest.raises(UnreachableError, match="timed out"):
            await driver.power_state()
        service.fail(RESET, _never)
        with pytest.raises(OutcomeUnknownError):
            await driver.set_power(PowerAction.ON)


async def test_a_connection_that_breaks_leaves_the_outcome_of_a_change_open(service: Service) -> None:
    async def cut(request: web.Request) -> web.StreamResponse | None:
        if request.path == RESET and request.transport is not None:
            request.transport.abort()
        return None

    service.faults.append(cut)
    async with _driver(service.target()) as driver:
        with pytest.raises(OutcomeUnknownError):
            await driver.set_power(PowerAction.ON)


async def test_nobody_listens(service: Service, unused_tcp_port: int) -> None:
    service.port = unused_tcp_port
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1"):
        await connect(service.target())


@pytest.mark.parametrize("link", ["@evil.example/x", "//evil.example/x", "evil", "/a b", "https://evil.example"])
async def test_links_never_lead_to_another_host(service: Service, link: str) -> None:
    service.system["Actions"]["#ComputerSystem.Reset"]["target"] = link
    async with _driver(service.target()) as driver:
        with pytest.raises(BmcError):
            await driver.set_power(PowerAction.ON)


async def test_absolute_links_are_taken_for_their_path(service: Service) -> None:
    service.system["Actions"]["#ComputerSystem.Reset"]["target"] = f"https://other.example{RESET}"
    async with _driver(service.target()) as driver:
        await driver.set_power(PowerAction.ON)
    assert service.resets == ["On"]


async def test_a_hanging_logout_does_not_hold_up_closing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redfish_http, "LOGOUT_TIMEOUT_S", 0.1)
    driver = await connect(service.target())
    service.fail(f"{SESSIONS}/token-1", _never)
    async with asyncio.timeout(3):
        await driver.close()


async def test_secrets_are_in_no_log_and_no_representation(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    target = service.target()
    async with _driver(target) as driver:
        await driver.power_state()
    assert "right" not in caplog.text + repr(target)
    assert "token-1" not in caplog.text


@pytest.mark.parametrize("odd", [5, None, "CD", {"CD": 1}, [{}], [["CD"]]])
async def test_media_types_of_another_form_are_none(service: Service, odd: object) -> None:
    service.documents[SLOT]["MediaTypes"] = odd
    async with _driver(service.target()) as driver:
        with pytest.raises(UnsupportedError):
            await driver.insert_media("http://192.0.2.1/a.iso", kind="CD")


@pytest.mark.parametrize("odd", [5, None, {"Name": "ResetType"}, [{"Name": "ResetType", "AllowableValues": 5}]])
async def test_action_info_of_another_form_says_nothing(service: Service, odd: object) -> None:
    service.system["Actions"]["#ComputerSystem.Reset"] = {"target": RESET, "@Redfish.ActionInfo": "/redfish/v1/info"}
    service.documents["/redfish/v1/info"] = {"Parameters": odd}
    async with _driver(service.target()) as driver:
        await driver.set_power(PowerAction.ON)
    assert service.resets == ["On"]


@pytest.mark.parametrize("etag", ["a\r\nX-Evil: 1", "\u202e", "a" * 100_000])
async def test_an_etag_that_fits_in_no_header_is_not_handed_back(service: Service, etag: str) -> None:
    service.system["@odata.etag"] = etag
    async with _driver(service.target()) as driver:
        await driver.set_boot_device("pxe", persistent=False, efi=True)
    assert service.system["Boot"]["BootSourceOverrideTarget"] == "Pxe"


async def test_an_answer_that_is_no_utf8_is_malformed(service: Service) -> None:
    async def answer() -> web.StreamResponse:
        return web.Response(body=b'{"Name": "\xff\xfe"}', content_type="application/json")

    async with _driver(service.target()) as driver:
        service.fail(SYSTEM, answer)
        with pytest.raises(MalformedResponseError):
            await driver.power_state()


async def test_what_a_service_lists_is_one_short_line_in_an_error(service: Service) -> None:
    service.system["Boot"]["BootSourceOverrideTarget@Redfish.AllowableValues"] = ["a\nb\x1b[2J", *"x" * 5000]
    async with _driver(service.target()) as driver:
        with pytest.raises(UnsupportedError) as raised:
            await driver.set_boot_device("pxe", persistent=False, efi=True)
    assert raised.value.message.isprintable()
    assert len(raised.value.message) < 500


@pytest.mark.parametrize("link", ["/" + "x" * 5000, "/a\x7fb", "/a\u202eb"])
async def test_a_link_that_is_long_or_not_printable_is_no_path(service: Service, link: str) -> None:
    service.documents["/redfish/v1/Systems"]["Members"] = [{"@odata.id": link}]
    async with _driver(service.target()) as driver:
        with pytest.raises(MalformedResponseError) as raised:
            await driver.power_state()
    assert len(raised.value.message) < 200


async def test_the_words_of_a_broken_encoding_are_one_line(service: Service) -> None:
    async def answer() -> web.StreamResponse:
        return web.Response(body=b"no gzip", headers={"Content-Encoding": "gzip"}, content_type="application/json")

    async with _driver(service.target()) as driver:
        service.fail(SYSTEM, answer)
        with pytest.raises(BmcError) as raised:
            await driver.power_state()
    assert raised.value.message.isprintable()
