"""What `ironbell run` can be told."""

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
    """How replicas agree on who works; `duration_s` > `renew_s` > `retry_s`."""

    is_on: bool = True
    namespace: str = ""
    """Where the Lease is; empty: the pod's namespace, else ours."""
    duration_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0

    def checked(self) -> ElectionOptions:
        """The same.

        Raises:
            RunOptionsError: the times do not fit each other.
        """
        if not self.duration_s > self.renew_s > 1.2 * self.retry_s > 0:
            raise RunOptionsError(
                "leader election: the lease duration must exceed the renew deadline, "
                "and that 1.2 times the retry period"
            )
        return self


@dataclass(frozen=True)
class RunOptions:
    """Everything."""

    components: tuple[Component, ...]
    kubeconfig: Path | None = None
    context: str = ""
    namespace: str = ""
    """Look at this namespace only; empty: all."""
    election: ElectionOptions = ElectionOptions()
    workers: Mapping[str, int] = field(default_factory=dict)
    """By controller; under the empty name for all others."""
    health_address: str = ""
    grace_s: float = 20.0
    webhook_address: str = ""
    """Where webhooks are answered; empty: nowhere."""
    webhook_hosts: tuple[str, ...] = ()
    """Names by which the API server calls them."""
    settings: Settings = DEFAULT_SETTINGS
    """What the systems among the components are told."""
    is_supervised: bool = False
    """Whether the process ends with whoever holds the other end of its standard input."""


def read_workers(texts: Iterable[str], known: Iterable[str]) -> dict[str, int]:
    """`N` for all controllers, `CONTROLLER=N` for one.

    Raises:
        RunOptionsError: neither, or there is no such controller.
    """
    names = set(known)
    found = {}
    for text in texts:
        match = _WORKERS.fullmatch(text)
        if match is None:
            raise RunOptionsError(f"--workers {text!r} must be N or CONTROLLER=N")
        name = match[1] or ""
        if name and name not in names:
            raise RunOptionsError(f"--workers: {name!r} is no controller here; known are: {', '.join(sorted(names))}")
        found[name] = int(match[2])
    return found
