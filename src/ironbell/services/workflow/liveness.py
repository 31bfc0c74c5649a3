"""Signs of life of agents at work: an action whose agent is silent for minutes fails long before its own timeout.

The timeout of an action that writes whole disks is hours or days. Our agent beats while an action's process runs; it
announces how often when it asks for an action, and that is recorded on the Workflow in the write that hands the action
out. The beats themselves are kept in memory only. Agents that announce none, as upstream's, have the whole timeout.

What the memory lacks (after a restart of this service, or after it was suspended) counts from when that is noticed.
With several replicas the one that `ironbell.dev/log-replica` names decides: the agent's calls arrive there. Another one
claims a Workflow of which it has heard nothing for three times as long, since the replica that is named may be gone for
good: one that is not, and hears the agent, claims it back with the next sign of life.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from ironbell.api.client import ApiError
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import Clock, rfc3339
from ironbell.codec.proto import heartbeat_pb2
from ironbell.codec.proto.heartbeat_grpc import HeartbeatServiceBase
from ironbell.services.workflow import metrics, names, reboot
from ironbell.services.workflow.annotator import Annotator
from ironbell.services.workflow.changes import Change, Place, failed_at
from ironbell.services.workflow.guard import Gate
from ironbell.services.workflow.index import Key
from ironbell.services.workflow.port import receive
from ironbell.services.workflow.selection import position
from ironbell.services.workflow.writer import WorkflowWriter

if TYPE_CHECKING:
    import grpclib.server

SILENCE_S: Final = 300.0
"""How long an agent at work may be silent. Switches that restart and congested networks take less."""
REBOOT_SILENCE_S: Final = 1800.0
"""The same where the Workflow survives a reboot of its machine, which may take its time."""
_LEAST_BEATS: Final = 5
"""So many beats must be missing, however seldom the agent beats."""
_LOOKS_PER_SILENCE: Final = 20
_TAKEOVER: Final = 3
"""How many times the silence another replica waits before it claims a Workflow."""
_SEVERAL: Final = 3
"""From so many agents on, it is more likely that this service was cut off than that all of them vanished at once."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AtWork:
    """An action that an agent which beats carries out."""

    workflow: Workflow
    place: Place
    interval_s: float

    @property
    def action_id(self) -> str:
        return self.workflow.status.tasks[self.place[0]].actions[self.place[1]].id

    @property
    def agent_id(self) -> str:
        return self.workflow.status.tasks[self.place[0]].agent_id

    @property
    def mark(self) -> tuple[Key, str, str]:
        """What a beat is noted by."""
        return self.workflow.key, self.workflow.metadata.uid, self.action_id

    def is_of(self, replica: str) -> bool:
        """Whether its agent's calls arrive at this replica, as far as is recorded."""
        return self.workflow.metadata.annotations.get(names.LOG_REPLICA, replica) == replica

    def limit_s(self, silence_s: float) -> float:
        """How long its agent may be silent."""
        policy = self.workflow.metadata.annotations.get(names.ON_REBOOT, reboot.FAIL).strip().lower()
        survives = policy in {reboot.RESTART, reboot.RESUME}
        usual = silence_s * REBOOT_SILENCE_S / SILENCE_S if survives else silence_s
        return max(usual, _LEAST_BEATS * self.interval_s)


def intervals(workflow: Workflow) -> dict[str, float]:
    """Seconds between the beats of each agent that was given an action; what cannot be read counts as nothing."""
    text = workflow.metadata.annotations.get(names.HEARTBEATS, "")
    try:
        return msgspec.json.decode(text, type=dict[str, float]) if text else {}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def recorded(workflow: Workflow, agent_id: str, interval_s: float) -> dict[str, str | None]:
    """The annotation with what this agent announces (0: no beats), to be written as an action is handed out."""
    known = intervals(workflow)
    wanted = {agent: seconds for agent, seconds in known.items() if agent != agent_id}
    if interval_s > 0:
        wanted[agent_id] = interval_s
    if wanted == known:
        return {}
    return {names.HEARTBEATS: msgspec.json.encode(dict(sorted(wanted.items()))).decode() if wanted else None}


def at_work(workflow: Workflow | None) -> AtWork | None:
    """The action of which signs of life are expected; None where there is none."""
    if workflow is None or workflow.status.state != WorkflowState.RUNNING:
        return None
    place = position(workflow)
    if place is None:
        return None
    task = workflow.status.tasks[place[0]]
    interval_s = intervals(workflow).get(task.agent_id, 0.0)
    if interval_s <= 0 or task.actions[place[1]].state != WorkflowState.RUNNING:
        return None
    return AtWork(workflow, place, interval_s)


def silence(found: AtWork, silent_s: float, *, now: str) -> Change:
    """The change that fails the Workflow of an agent that has been silent for so long."""
    action = found.workflow.status.tasks[found.place[0]].actions[found.place[1]]
    message = (
        f"agent {found.agent_id} sent no sign of life for {silent_s:.0f} s while action {action.name} was running; "
        "its machine may have lost power or network, or its kernel may hang"
    )
    return failed_at(found.workflow, found.agent_id, place=found.place, message=message, now=now)


@dataclass
class Liveness(HeartbeatServiceBase):
    """The service that takes beats; `run` fails the Workflows of silent agents."""

    writer: WorkflowWriter
    annotator: Annotator
    clock: Clock
    gate: Gate = field(default_factory=Gate)
    replica: str = ""
    silence_s: float = SILENCE_S
    _heard: dict[tuple[Key, str, str], float] = field(default_factory=dict)
    _looked_at: float | None = None

    async def Beat(  # noqa: N802 - the name on the wire
        self, stream: grpclib.server.Stream[heartbeat_pb2.BeatRequest, heartbeat_pb2.BeatResponse]
    ) -> None:
        """Note that an agent lives. One whose action has ended is answered all the same."""
        request = await receive.message(stream, heartbeat_pb2.BeatRequest)
        receive.check_agent_id(request.agent_id)
        namespace, _, name = request.workflow_id.partition("/")
        workflow = self.writer.index.get(namespace, name)
        if workflow is not None:
            if (why := self.gate.objection(workflow, request.agent_id, receive.caller_of(stream))) is not None:
                raise GRPCError(Status.PERMISSION_DENIED, why)
            self.heard(workflow, self.gate.agent_ids(request.agent_id), request.action_id)
        await stream.send_message(heartbeat_pb2.BeatResponse())

    def heard(self, workflow: Workflow, agent_ids: Sequence[str], action_id: str) -> None:
        """Note a sign of life of the agent that carries out this action and goes by any of these ids."""
        if not any(
            task.agent_id in agent_ids and any(action.id == action_id for action in task.actions)
            for task in workflow.status.tasks
        ):
            return
        self._heard[(workflow.key, workflow.metadata.uid, action_id)] = self.clock.monotonic()
        if workflow.metadata.annotations.get(names.LOG_REPLICA, self.replica) != self.replica:
            # The agent's calls arrive here now: its silence is this replica's to judge.
            self.annotator.put(workflow.key, names.LOG_REPLICA, self.replica)

    async def run(self) -> None:
        """Look for silent agents until cancelled."""
        pause_s = self.silence_s / _LOOKS_PER_SILENCE
        while True:
            await asyncio.sleep(pause_s)
            await self.look(expected_s=pause_s)

    async def look(self, *, expected_s: float) -> None:
        """Fail what has been silent for too long. `expected_s` is when this should have followed the look before."""
        now = self.clock.monotonic()
        if self._looked_at is not None and now - self._looked_at > expected_s + self.silence_s / 4:
            log.warning("liveness timers restarted", seconds=round(now - self._looked_at))
            self._heard.clear()
        self._looked_at = now
        running = [one for workflow in self.writer.index.running() if (one := at_work(workflow)) is not None]
        marks = {one.mark for one in running}
        self._heard = {mark: at for mark, at in self._heard.items() if mark in marks}
        for one in running:
            if not one.is_of(self.replica):
                self._claim(one, now)
        found = [one for one in running if one.is_of(self.replica)]
        for one in found:
            self._heard.setdefault(one.mark, now)
        silent = [one for one in found if self._is_silent(one)]
        if len(silent) >= _SEVERAL and len(silent) == len(found) and not self._is_long(silent, now):
            log.warning("no agent sends a sign of life; the network of this service may be cut", agents=len(silent))
            return
        for one in silent:
            await self._fail(one, now - self._heard[one.mark])
        self._looked_at = self.clock.monotonic()

    def _is_silent(self, one: AtWork) -> bool:
        """Whether its agent has been silent for too long; a write that took its time may find that it is not."""
        return self.clock.monotonic() - self._heard[one.mark] > one.limit_s(self.silence_s)

    def _is_long(self, silent: list[AtWork], now: float) -> bool:
        """Whether this has lasted so long that it does not matter whose network is cut."""
        return any(now - self._heard[one.mark] > 3 * one.limit_s(self.silence_s) for one in silent)

    def _claim(self, one: AtWork, now: float) -> None:
        """Judge the agent of another replica from now on, if that replica may be gone."""
        if now - self._heard.setdefault(one.mark, now) > _TAKEOVER * one.limit_s(self.silence_s):
            self._heard[one.mark] = now
            self.annotator.put(one.workflow.key, names.LOG_REPLICA, self.replica)

    async def _fail(self, one: AtWork, silent_s: float) -> None:
        def decision(stored: Workflow | None) -> AtWork | None:
            current = at_work(stored)
            is_same = current is not None and current.mark == one.mark and current.is_of(self.replica)
            return current if is_same and self._is_silent(one) else None

        def change(current: AtWork | None) -> Change | None:
            return silence(current, silent_s, now=rfc3339(self.clock.now())) if current is not None else None

        try:
            decided = await self.writer.decide(*one.workflow.key, decision=decision, change=change)
        except ApiError as error:
            log.warning("silent agent not recorded", workflow="/".join(one.workflow.key), error=error.message)
            return
        if decided is not None:
            metrics.SILENT.inc()
            log.warning("agent is silent", workflow="/".join(one.workflow.key), agent=one.agent_id, seconds=silent_s)
