"""Commands to a running lab, over a local socket: power as by hand, and faults of BMCs.

One JSON object a line, one answer a line: `{"machine": "node-1", "power": "on"}` or `{"machine": "node-1", "fault":
"busy"}`; the answer has `ok` and, where that is false, `message`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ironbell.base.errors import IronbellError
from ironbell.lab.machine import VirtualMachine
from ironbell.lab.redfish import Fault, VirtualBmc

ANSWER_TIMEOUT_S = 60.0

POWER: dict[str, Callable[[VirtualMachine], Awaitable[None]]] = {
    "on": VirtualMachine.on,
    "off": VirtualMachine.off,
    "cycle": VirtualMachine.cycle,
    "shutdown": VirtualMachine.shut_down,
}


class LabCommandError(IronbellError):
    """A command to the lab failed."""

    reason = "LabCommandFailed"


async def obey(bmcs: Mapping[str, VirtualBmc], request: Any) -> dict[str, Any]:
    """Carry out one request; an invalid request is answered, never raised."""
    if not isinstance(request, dict):
        return {"ok": False, "message": "the request is not a JSON object"}
    bmc = bmcs.get(str(request.get("machine")))
    if bmc is None:
        return {"ok": False, "message": f"the lab has no machine {request.get('machine')!r}; it has {', '.join(bmcs)}"}
    try:
        if "power" in request:
            if request["power"] not in POWER:
                return {"ok": False, "message": f"power must be one of {', '.join(POWER)}"}
            await POWER[request["power"]](bmc.machine)
        if "fault" in request:
            bmc.faults.current = Fault(request["fault"])
    except ValueError:
        return {"ok": False, "message": f"fault must be one of {', '.join(fault.value for fault in Fault)}"}
    except IronbellError as error:
        return {"ok": False, "message": str(error)}
    return {"ok": True, "power": bmc.machine.power.value, "fault": bmc.faults.current.value}


async def serve_control(path: Path, bmcs: Mapping[str, VirtualBmc]) -> None:
    """Take requests until cancelled."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                try:
                    answer = await obey(bmcs, msgspec.json.decode(line))
                except msgspec.DecodeError:
                    answer = {"ok": False, "message": "malformed JSON"}
                writer.write(msgspec.json.encode(answer) + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            return
        finally:
            writer.close()

    path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(talk, path)
    path.chmod(0o600)
    async with server:
        await server.serve_forever()


async def send(path: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """Send one request to a running lab.

    Raises:
        LabCommandError: the lab does not answer, or rejects the command.
    """
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(msgspec.json.encode(dict(request)) + b"\n")
                answer = msgspec.json.decode(await reader.readline())
            finally:
                writer.close()
    except (OSError, TimeoutError, msgspec.DecodeError) as error:
        raise LabCommandError(f"the lab at {path} does not answer: {error}") from error
    if not answer.get("ok"):
        raise LabCommandError(str(answer.get("message")))
    return dict(answer)
