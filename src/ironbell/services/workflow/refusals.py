"""Notes on a Workflow who was refused that asked for its actions, so that `ironbell why` can tell.

Anybody may ask: a Workflow is written for it at most once a minute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.base.clock import Clock, rfc3339
from ironbell.services.workflow import names
from ironbell.services.workflow.annotator import Annotator
from ironbell.services.workflow.index import Key

PERIOD_S: Final = 60.0


@dataclass
class Refusals:
    """The notes of one service; without an annotator nothing is noted."""

    annotator: Annotator | None
    clock: Clock
    _noted_at: dict[Key, float] = field(default_factory=dict)

    def note(self, workflow: Workflow, peer: str, why: str) -> None:
        """Note a refusal, unless one was noted a moment ago."""
        now = self.clock.monotonic()
        self._noted_at = {key: at for key, at in self._noted_at.items() if now < at + PERIOD_S}
        if self.annotator is None or workflow.key in self._noted_at:
            return
        self._noted_at[workflow.key] = now
        document = {"peer": peer, "time": rfc3339(self.clock.now()), "why": why}
        self.annotator.put(workflow.key, names.REFUSED, msgspec.json.encode(document).decode())
