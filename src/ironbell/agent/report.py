"""`python -m ironbell.agent.report [panic|agent-failure|notice] [TEXT]`: report an event of this machine to the server.

For the in-memory OS's own scripts: without TEXT, standard input is sent. Settings come from the kernel command line
and the environment, as for the agent. Tries for 30 s; status 0 when the server has accepted it, 1 otherwise.
"""

from __future__ import annotations

import asyncio
import os
import sys

from ironbell.agent.rpc import PERMANENT, CallError, Client
from ironbell.agent.settings import Settings, SettingsError, read_boot_id, read_cmdline, resolve
from ironbell.codec.proto import log_pb2

_LIMIT_S = 30.0
_PAUSE_S = 2.0
_MAX_TEXT = 8192
_KINDS = {
    "panic": log_pb2.MachineReport.PANIC,
    "agent-failure": log_pb2.MachineReport.AGENT_FAILURE,
    "notice": log_pb2.MachineReport.NOTICE,
}


async def send(settings: Settings, report: log_pb2.MachineReport) -> str:
    """Send one report; return nothing when the server accepted it, else the reason."""
    client = Client(settings)
    reason = "the server did not answer"
    try:
        async with asyncio.timeout(_LIMIT_S):
            while True:
                try:
                    await client.report_machine(report)
                except CallError as error:
                    reason = error.message
                    if error.status in PERMANENT:
                        return reason
                    await asyncio.sleep(_PAUSE_S)
                else:
                    return ""
    except TimeoutError:
        return reason
    finally:
        client.close()


def main(arguments: list[str]) -> int:
    """Send the arguments or standard input."""
    kind = _KINDS.get(arguments[0] if arguments else "")
    if kind is None:
        sys.stderr.write(f"usage: python -m ironbell.agent.report {{{','.join(_KINDS)}}} [TEXT]\n")
        return 2
    text = " ".join(arguments[1:]) or sys.stdin.read()
    try:
        settings = resolve([], environment=os.environ, cmdline=read_cmdline(), boot_id=read_boot_id(os.environ))
    except SettingsError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    # The end of a long text is more useful than its beginning.
    report = log_pb2.MachineReport(agent_id=settings.agent_id, kind=kind, text=text[-_MAX_TEXT:])
    if reason := asyncio.run(send(settings, report)):
        sys.stderr.write(f"not reported: {reason}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
