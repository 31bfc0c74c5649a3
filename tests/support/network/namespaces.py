"""Networks of a test's own: a namespace with bridges for a site, and one for each machine that hangs on them."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from support.skips import require_program, require_root

T = TypeVar("T")

_CLONE_NEWNET = 0x40000000
_numbers = itertools.count()


def ip(*words: str) -> None:
    """Run iproute2's `ip`."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


def enter(path: str) -> None:
    """Move this thread into the namespace of a file."""
    with Path(path).open() as handle:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.setns(handle.fileno(), _CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())


@contextlib.contextmanager
def entered(namespace: str) -> Iterator[None]:
    """This thread, and what it starts, in a namespace until the block is left."""
    with Path(f"/proc/self/task/{threading.get_native_id()}/ns/net").open() as before:
        enter(f"/run/netns/{namespace}")
        try:
            yield
        finally:
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.setns(before.fileno(), _CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())


def within(namespace: str, function: Callable[[], T]) -> T:
    """Call a function in a namespace, in a thread of its own."""
    results: list[T] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            with entered(namespace):
                results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


class Lan:
    """A site's namespace with bridges in it. The interface of every other host is called `lan`."""

    def __init__(self, *addresses: str, bridge: str = "br0") -> None:
        self.prefix = f"ib{os.getpid() % 100000}c{next(_numbers)}"
        self._namespaces: list[str] = []
        self.site = self._namespace("site")
        self.bridge(bridge, *addresses)

    def name(self, host: str) -> str:
        return f"{self.prefix}{host}"

    def bridge(self, name: str, *addresses: str) -> None:
        """One more network of the site."""
        ip("-n", self.site, "link", "add", name, "type", "bridge", "stp_state", "0", "forward_delay", "0")
        for address in addresses:
            ip("-n", self.site, "address", "add", address, "brd", "+", "dev", name)
        ip("-n", self.site, "link", "set", name, "up")

    def _namespace(self, host: str) -> str:
        name = self.name(host)
        ip("netns", "add", name)
        self._namespaces.append(name)
        ip("-n", name, "link", "set", "lo", "up")
        return name

    def add(self, host: str, *addresses: str, mac: str = "", bridge: str = "br0") -> str:
        """A host on a bridge, with these addresses (with prefix length); the name of its namespace."""
        namespace, port = self._namespace(host), f"p-{host}"[:15]
        ip("-n", self.site, "link", "add", port, "type", "veth", "peer", "name", "lan", "netns", namespace)
        ip("-n", self.site, "link", "set", port, "master", bridge, "up")
        if mac:
            ip("-n", namespace, "link", "set", "lan", "address", mac)
        for address in addresses:
            ip("-n", namespace, "address", "add", address, "brd", "+", "dev", "lan")
        ip("-n", namespace, "link", "set", "lan", "up")
        return namespace

    def close(self) -> None:
        """Remove everything; whoever still runs in a namespace is ended."""
        for namespace in self._namespaces:
            found = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False)
            for pid in found.stdout.split():
                if int(pid) != os.getpid():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
            ip("netns", "delete", namespace)


@contextlib.contextmanager
def lan(*addresses: str, bridge: str = "br0") -> Iterator[Lan]:
    """A network; the test's thread is inside the site's namespace until the block is left."""
    require_root()
    require_program("ip")
    made = Lan(*addresses, bridge=bridge)
    try:
        with entered(made.site):
            yield made
    finally:
        made.close()
