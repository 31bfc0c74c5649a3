"""The `core` process: embedded API and controllers, joined by direct calls.

It reads no packet from a machine. Its folder for the servers for machines has what they need to reach the API: a Unix
socket, and for each process a token, which the process reads before it gives up its privileges and no other account
can read. Core owns that folder: see `app.site.service_folder`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from ironbell.api.crd.document import crd_document
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.access.roles import RoleAuthorizer
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.audit import AuditLog
from ironbell.apiserver.http.serve import ListenError, Running, serve
from ironbell.apiserver.store import guards
from ironbell.apiserver.store.keys import KeyFile
from ironbell.apiserver.store.retention import Retention
from ironbell.app import roles
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.app.admission.embedded import check_references, protect_held_servers
from ironbell.app.admission.warnings import warn_of_tinkerbell
from ironbell.app.processes.child import read_configuration, report, run_child
from ironbell.app.site.core_config import CoreConfig
from ironbell.app.site.data_folder import DATABASE, KEY_FILE
from ironbell.app.site.restored import hold_after_restore
from ironbell.app.site.wire_limits import limit_wire
from ironbell.app.site.workflow_logs import WorkflowLogs
from ironbell.app.systems import engine_kinds
from ironbell.app.wire.config import API_SOCKET, LOGS_SOCKET, TOKEN_FILE, WORKFLOW_TOKEN_FILE
from ironbell.base.clock import SteadyClock, SystemClock
from ironbell.base.memory import freeze_gc, tune_gc
from ironbell.base.ownfolder import OwnFolder
from ironbell.base.randomness import SystemRandomness
from ironbell.base.threads import load
from ironbell.codec.cel import compile_rule
from ironbell.contract.system import Settings
from ironbell.kube.manager.lag import LoopLag

if TYPE_CHECKING:
    from ironbell.app.site.controllers import RunControllers

_log = structlog.get_logger()

PREDECESSOR_S = 8.0
_POLL_S = 0.05
TOKEN_MODE = 0o400
_MOST_TOKEN = 4096
_TOKENS = {TOKEN_FILE: roles.BOOT, WORKFLOW_TOKEN_FILE: roles.WORKFLOW}
"""File name of the token of each process for machines, with the process's user name."""
SOCKET_MODE = 0o666
"""Every account may connect; the token identifies the client."""


def prepare() -> Callable[[], Awaitable[None]]:
    """Read the configuration, and return a function that serves until cancelled."""
    configuration = read_configuration(CoreConfig)
    os.umask(0o077)
    tune_gc()
    return lambda: serve_core(configuration)


async def serve_core(configuration: CoreConfig) -> None:
    """Open the store, serve the API and run the controllers, until cancelled."""
    folder = Path(configuration.data_dir)
    wire = Path(configuration.wire_folder) if configuration.wire_folder else None
    clock, steady, randomness = SystemClock(), SteadyClock(), SystemRandomness()
    authorizer = RoleAuthorizer()
    roles.grant_processes(authorizer)
    cluster_kinds = ClusterKinds(configuration.without)
    await _wait_for_predecessor(folder / DATABASE)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            ApiServer.open(
                folder / DATABASE,
                keys=KeyFile(Path(configuration.encryption_key_file or folder / KEY_FILE)),
                clock=clock,
                randomness=randomness,
                definitions=[crd_document(kind) for kind in engine_kinds()],
                authorizer=authorizer,
                compile_rule=compile_rule,
                conversions=cluster_kinds.conversions,
                retention=Retention(seconds=configuration.history_seconds),
            )
        )
        limit_wire(server.admission)
        check_references(server.admission, server.authorizer)
        warn_of_tinkerbell(server.admission)
        protect_held_servers(server.admission)
        cluster_kinds.join(server)
        if wire is not None:
            WorkflowLogs(wire / LOGS_SOCKET).register(server.connects)
        await hold_after_restore(folder, server.client(ADMIN))
        if wire is not None:
            await asyncio.to_thread(_remove_socket, wire)
        running = await _serve(stack, server, configuration)
        if wire is not None:
            await asyncio.to_thread(_give_tokens, running, wire)
        report("serving", kubeconfig=str(running.kubeconfig), port=running.port)
        await cluster_kinds.define(server)
        report("ready")
        run_controllers = await load(_controllers)
        async with asyncio.TaskGroup() as group:
            lag = group.create_task(LoopLag().run(), name="loop lag")
            try:
                await run_controllers(
                    server,
                    authorizer,
                    steady,
                    randomness,
                    _announce,
                    configuration.without,
                    Settings((configuration.installs,)),
                )
            finally:
                lag.cancel()


def _controllers() -> RunControllers:
    """Import the controllers: much code that the API does not need to answer."""
    from ironbell.app.site.controllers import run_controllers

    return run_controllers


async def _wait_for_predecessor(database: Path) -> None:
    """Wait for a predecessor that still ends because its supervisor was killed; opening reports one that stays."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PREDECESSOR_S):
            while guards.is_held(database):  # noqa: ASYNC110 - nothing reports the end of a lock
                await asyncio.sleep(_POLL_S)


async def _serve(stack: AsyncExitStack, server: ApiServer, configuration: CoreConfig) -> Running:
    """Open the API, on the previous port if possible."""
    wire = Path(configuration.wire_folder) if configuration.wire_folder else None
    ports = [configuration.api_port or configuration.preferred_port]
    if not configuration.api_port and configuration.preferred_port:
        ports.append(0)
    audit: AuditLog | None = None
    if configuration.audit_log:
        audit = await asyncio.to_thread(AuditLog, Path(configuration.audit_log))
        stack.enter_context(audit.writing())
    while True:
        port = ports.pop(0)
        try:
            return await stack.enter_async_context(
                serve(
                    server,
                    data_dir=Path(configuration.data_dir),
                    tls_address=(configuration.api_address, port),
                    unix_socket=wire / API_SOCKET if wire else None,
                    unix_socket_mode=SOCKET_MODE,
                    audit=audit,
                    token_file=Path(configuration.token_file) if configuration.token_file else None,
                )
            )
        except ListenError:
            if not ports:
                raise
            _log.warning("previous port in use; clients need the new kubeconfig", port=port)


def _announce() -> None:
    freeze_gc()
    report("controllers ready")


def _remove_socket(wire: Path) -> None:
    """Remove the file with the name of the API's socket, independent of its owner."""
    with OwnFolder.open(wire) as folder:
        folder.remove(API_SOCKET)


def _give_tokens(running: Running, wire: Path) -> None:
    """Write the tokens where the servers for machines read them, by rename; an existing valid one stays, so that a
    restart of this process goes unnoticed."""
    running.tokens.revoke(roles.FORMER)
    with OwnFolder.open(wire) as folder:
        for name, holder in _TOKENS.items():
            stored = folder.read(name, limit=_MOST_TOKEN)
            if stored is not None and stored[1].st_uid == os.geteuid():
                known = running.tokens.identify(stored[0].decode("utf-8", "replace"))
                if known is not None and known.user == holder:
                    continue
            token = running.tokens.issue(holder, roles.SERVICE_GROUPS)
            folder.write(name, token.encode(), mode=TOKEN_MODE)


if __name__ == "__main__":
    sys.exit(run_child("core", prepare))
