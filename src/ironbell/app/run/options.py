"""Options of `ironbell run`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ironbell.app.components import Component
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.system import DEFAULT_SETTINGS, Settings

_WORKERS = re.compile(r"(?:([a-z0-9-]+)=)?([1-9][0-9]{0,3})")


class RunOptionsError(IronbellError):
    """Options that cannot be used, or not together."""

    reason = "InvalidOptions"
    retry = Retry.NEVER


@dataclass(frozen=True)
class ElectionOptions:
    """Leader election among replicas; `duration_s` > `renew_s` > `retry_s`."""

    is_on: bool = True
    namespace: str = ""
    """Namespace of the Lease; empty selects the pod's namespace, or else ours."""
    duration_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0

    def checked(self) -> ElectionOptions:
        """Return the options if they are consistent.

        Raises:
            RunOptionsError: the times are not consistent.
        """
        if not self.duration_s > self.renew_s > 1.2 * self.retry_s > 0:
            raise RunOptionsError(
                "leader election: the lease duration must exceed the renew deadline, "
                "and that 1.2 times the retry period"
            )
        return self


@dataclass(frozen=True)
class RunOptions:
    """All options."""

    components: tuple[Component, ...]
    kubeconfig: Path | None = None
    context: str = ""
    namespace: str = ""
    """The only namespace to watch; empty for all."""
    election: ElectionOptions = ElectionOptions()
    workers: Mapping[str, int] = field(default_factory=dict)
    """Number of workers by controller; the empty name stands for all others."""
    health_address: str = ""
    grace_s: float = 20.0
    webhook_address: str = ""
    """Address of the webhooks; empty for none."""
    webhook_hosts: tuple[str, ...] = ()
    """Names by which the API server calls the webhooks."""
    settings: Settings = DEFAULT_SETTINGS
    """Settings of the systems among the components."""
    is_supervised: bool = False
    """Whether the process exits when the other end of its standard input is closed."""


def read_workers(texts: Iterable[str], known: Iterable[str]) -> dict[str, int]:
    """Parse `N` for all controllers, or `CONTROLLER=N` for one.

    Raises:
        RunOptionsError: a text has another form, or there is no such controller.
    """
    names = set(known)
    workers = {}
    for text in texts:
        match = _WORKERS.fullmatch(text)
        if match is None:
            raise RunOptionsError(f"--workers: {text!r} is not N or CONTROLLER=N")
        name = match[1] or ""
        if name and name not in names:
            raise RunOptionsError(
                f"--workers: {name!r} is not a controller of Ironbell; known controllers: {', '.join(sorted(names))}"
            )
        workers[name] = int(match[2])
    return workers
