"""The parts of Redfish that virtual BMCs share: JSON bodies, errors, sessions, the service root, boot and reset.

Source: DMTF DSP0266 sections 8 (responses, errors), 13 (authentication).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import msgspec
from aiohttp import web

T = TypeVar("T")

SYSTEM = "/redfish/v1/Systems/1"
MANAGER = "/redfish/v1/Managers/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
SESSIONS = "/redfish/v1/SessionService/Sessions"
MAX_SESSIONS = 16
OPEN_PATHS = frozenset({"/redfish", "/redfish/v1", "/redfish/v1/"})
ENABLED = ("Disabled", "Once", "Continuous")
NEED_POWER = ("ForceRestart", "GracefulRestart", "PowerCycle")
"""Reset types of a system that is on."""


async def read_body(request: web.Request) -> dict[str, Any]:
    """The JSON object of a request.

    Raises:
        HTTPBadRequest: the body is not a JSON object.
    """
    try:
        value = msgspec.json.decode(await request.read())
    except msgspec.DecodeError:
        raise web.HTTPBadRequest(text="malformed JSON") from None
    if not isinstance(value, dict):
        raise web.HTTPBadRequest(text="a JSON object is needed")
    return value


def answer(document: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A response with a document."""
    return web.Response(
        body=msgspec.json.encode(document),
        status=status,
        content_type="application/json",
        headers={"OData-Version": "4.0", **(headers or {})},
    )


def collection(path: str, kind: str, member: str) -> web.Response:
    """A collection of one member."""
    return answer(
        {
            "@odata.id": path,
            "@odata.type": f"#{kind}.{kind}",
            "Name": kind,
            "Members@odata.count": 1,
            "Members": [{"@odata.id": member}],
        }
    )


def error(status: int, code: str, message: str) -> web.Response:
    """An error in Redfish's form."""
    info = [{"MessageId": code, "Message": message}]
    return answer({"error": {"code": code, "message": message, "@Message.ExtendedInfo": info}}, status=status)


@dataclass
class Sessions:
    """The account of a BMC and its sessions. A client authenticates by a session's token or by Basic authentication."""

    user: str
    password: str = field(repr=False)
    sessions: dict[str, str] = field(default_factory=dict, repr=False, kw_only=True)
    """Identities by token, the oldest first."""
    evicts_oldest: ClassVar[bool] = False
    """Whether a session beyond the limit ends the oldest one, as on many BMCs; otherwise it is rejected."""

    def admits(self, request: web.Request) -> bool:
        """Return whether a request needs no authentication, or has one that is valid."""
        if request.path in OPEN_PATHS or (request.method == "POST" and request.path == SESSIONS):
            return True
        if request.headers.get("X-Auth-Token", "") in self.sessions:
            return True
        scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        return self.is_account(user, password)

    def is_account(self, user: str, password: str) -> bool:
        return hmac.compare_digest(password.encode(), self.password.encode()) and user == self.user

    async def log_in(self, request: web.Request) -> web.Response:
        body = await read_body(request)
        if not self.is_account(str(body.get("UserName", "")), str(body.get("Password", ""))):
            return error(401, "Base.1.0.AccessDenied", "User name or password is wrong.")
        if len(self.sessions) >= MAX_SESSIONS:
            if not self.evicts_oldest:
                return error(503, "Base.1.0.SessionLimitExceeded", "Too many sessions are open.")
            self.sessions.pop(next(iter(self.sessions)))
        token, identity = secrets.token_hex(16), secrets.token_hex(4)
        self.sessions[token] = identity
        location = f"{SESSIONS}/{identity}"
        document = {"@odata.id": location, "Id": identity, "Name": "Session", "UserName": self.user}
        return answer(document, status=201, headers={"X-Auth-Token": token, "Location": location})

    async def log_out(self, request: web.Request) -> web.Response:
        session = request.path.rpartition("/")[2]
        self.sessions = {token: identity for token, identity in self.sessions.items() if identity != session}
        return web.Response(status=204)


def service_root(name: str, uuid: str) -> dict[str, Any]:
    return {
        "@odata.id": "/redfish/v1/",
        "@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot",
        "Id": "RootService",
        "Name": name,
        "RedfishVersion": "1.6.0",
        "UUID": uuid,
        "Systems": {"@odata.id": "/redfish/v1/Systems"},
        "Managers": {"@odata.id": "/redfish/v1/Managers"},
        "SessionService": {"@odata.id": "/redfish/v1/SessionService"},
        "Links": {"Sessions": {"@odata.id": SESSIONS}},
    }


def boot_and_actions(
    *, enabled: str, target: str, targets: Sequence[str], mode: str, resets: Mapping[str, Any]
) -> dict[str, Any]:
    """The boot override of a system and its action, as properties of its document."""
    return {
        "Boot": {
            "BootSourceOverrideEnabled": enabled,
            "BootSourceOverrideTarget": target,
            "BootSourceOverrideTarget@Redfish.AllowableValues": targets,
            "BootSourceOverrideMode": mode,
        },
        "Actions": {
            "#ComputerSystem.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": list(resets)},
        },
    }


def reset_types(*, on: T, off: T, shut_down: T, cycle: T) -> Mapping[str, T]:
    """The power operation of each reset type."""
    ways = {"On": on, "ForceOn": on, "ForceOff": off, "GracefulShutdown": shut_down, "PushPowerButton": shut_down}
    return {**ways, **dict.fromkeys(NEED_POWER, cycle)}
