"""`ironbell run wire`: the boot services and the workflow service, each in a separate process, kept running.

A flood of the one does not reach the other, and one that is killed is restarted while the other continues; packets of
machines meanwhile wait in sockets that are kept here and never read. Controllers that are named as well are a third
process. The configuration is the first line of standard input.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import structlog

from ironbell.app.processes.child import read_configuration, stop_requested
from ironbell.app.processes.children import Child, ChildSpec, Report
from ironbell.app.processes.logs import configure_logging
from ironbell.base.errors import IronbellError, Retry

_log = structlog.get_logger()

MODULE: Final = "ironbell.app.run.supervisor"
_SERVERS_MODULE: Final = "ironbell.app.run.wire"
_CONTROLLERS: Final = "controllers"
_CLEANUP_S: Final = 8.0
"""Time that a child has beyond its grace period."""


class SupervisorConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The processes to supervise."""

    servers: dict[str, msgspec.Raw]
    """A `ServersConfig` for each process, by name; passed on unchanged, so that this process stays small."""
    controllers: tuple[str, ...] = ()
    """Arguments of `ironbell` for a process with the controllers; empty for none."""
    grace_s: float = 20.0


class CannotStartError(IronbellError):
    """A process failed before it had ever served."""

    reason = "CannotStart"
    retry = Retry.NEVER


@dataclass
class _Supervisor:
    config: SupervisorConfig
    _served: set[str] = field(default_factory=set)
    _fatal: asyncio.Future[str] | None = None

    async def run(self) -> None:
        """Run the processes until stopped.

        Raises:
            CannotStartError: a process failed before it had ever served: it would fail at every other start.
        """
        self._fatal = asyncio.get_running_loop().create_future()
        stopped = stop_requested()
        children = [asyncio.create_task(Child(spec, self._reported).run(), name=spec.name) for spec in self._specs()]
        waiting = asyncio.create_task(stopped.wait(), name="stopped")
        try:
            ends: list[asyncio.Future[Any]] = [waiting, self._fatal, *children]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (waiting, *children):
                task.cancel()
            await asyncio.gather(waiting, *children, return_exceptions=True)
        if self._fatal.done():
            raise CannotStartError(self._fatal.result())

    def _specs(self) -> list[ChildSpec]:
        stop_after_s = self.config.grace_s + _CLEANUP_S
        specs = [
            ChildSpec(
                name,
                _SERVERS_MODULE,
                lambda config=config: config,  # type: ignore[misc]
                stop_after_s=stop_after_s,
                keeps_sockets=True,
            )
            for name, config in self.config.servers.items()
        ]
        if self.config.controllers:
            words = self.config.controllers
            specs.append(ChildSpec(_CONTROLLERS, "ironbell.cli.main", dict, words, stop_after_s=stop_after_s))
        return specs

    async def _reported(self, name: str, report: Report) -> None:
        event = report["event"]
        if event == "ready":
            self._served.add(name)
        is_fatal = event == "failed" and name not in self._served
        if is_fatal and self._fatal is not None and not self._fatal.done():
            self._fatal.set_result(f"{name}: {report.get('message', '')}")
        details = {key: value for key, value in report.items() if key != "event"}
        _log.info("process reports", sender=name, what=event, details=details)


def main() -> int:
    """Run until stopped, and return the exit status."""
    config = read_configuration(SupervisorConfig)
    configure_logging(process="supervisor")
    try:
        asyncio.run(_Supervisor(config).run())
    except CannotStartError as error:
        sys.stderr.write(f"ironbell: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
