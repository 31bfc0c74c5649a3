"""What `ironbell run` can be told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ironbell.app.components import Component
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.node_images import NO_IMAGES, ImageSource
from ironbell.contract.racks import INSTALLS_PER_RACK
from ironbell.controllers.capi.machine.machine import NOTHING_MORE
from ironbell.controllers.capi.machine.node_metadata import Synced

_WORKERS = re.compile(r"(?:([a-z0-9-]+)=)?([1-9][0-9]{0,3})")


LEAST_TOKEN_TTL_S = 60.0


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
    token_ttl_s: float = 900.0
    """How long a bootstrap token lives that is not given more time."""
    webhook_address: str = ""
    """Where `tink-controller` and `cluster-api` answer webhooks; empty: nowhere."""
    webhook_hosts: tuple[str, ...] = ()
    """Names by which the API server calls them."""
    synced: Synced = NOTHING_MORE
    """What `cluster-api` hands from Machines to Nodes besides the usual."""
    metadata_url: str = ""
    """Where machines that `capt` installs reach the metadata service."""
    installs_per_rack: int = INSTALLS_PER_RACK
    """How many servers of a rack `capt` installs at the same time; 0 is no bound."""
    images: ImageSource = NO_IMAGES
    """Where machines that `capt` installs get images that nobody names."""
    external_kubeconfig: Path | None = None
    """How `capt` reaches the cluster that keeps the servers, if the file is there."""
    is_supervised: bool = False
    """Whether the process ends with whoever holds the other end of its standard input."""


def checked_token_ttl(seconds: float) -> float:
    """The same.

    Raises:
        RunOptionsError: too short to be given more time before it is over, three times.
    """
    if seconds < LEAST_TOKEN_TTL_S:
        raise RunOptionsError(f"--bootstrap-token-ttl must be at least {LEAST_TOKEN_TTL_S:g} seconds")
    return seconds


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
