"""The one setting that a host of namespace machines needs, for as long as the lab runs.

kube-proxy sets the size of the connection table, which belongs to the host and cannot be set from a machine's network;
it leaves it alone where it is what it wants, and does not start otherwise. A host with more keeps what it has once the
lab has ended.

Source: kubernetes/kubernetes: pkg/proxy/conntrack/sysctls.go (the default: 32768 a processor, at least 131072).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

CONNECTIONS = Path("/proc/sys/net/netfilter/nf_conntrack_max")
_EACH, _LEAST = 32768, 131072


def wanted_connections(processors: int) -> int:
    """What kube-proxy sets by default."""
    return max(_EACH * processors, _LEAST)


@contextlib.contextmanager
def node_host(setting: Path = CONNECTIONS) -> Iterator[None]:
    """Have the host as kube-proxy wants it while the context lasts; nothing where the host cannot be set."""
    try:
        before = setting.read_text()
        setting.write_text(str(wanted_connections(os.cpu_count() or 1)))
    except OSError:
        yield
        return
    try:
        yield
    finally:
        setting.write_text(before)
