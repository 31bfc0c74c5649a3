"""Heartbeats of agents: an action whose agent is silent for minutes fails long before the action's own timeout.

The timeout of an action that writes whole disks is hours or days. Our agent sends heartbeats while an action's process
runs. It announces their interval with each request for an action, and the write that hands the action out records it
on the Workflow. The heartbeats themselves are kept in memory only. Agents that announce no interval, such as
upstream's, have the whole timeout.

After a restart or a suspension of this service, the silence of every agent is counted from zero. With several replicas
the one that `ironbell.dev/log-replica` names decides, since the agent's calls arrive there. Another replica takes a
Workflow over after three times that silence, since the named one may have been deleted; if it was not, it takes the
Workflow back with the agent's next sign of life.
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
"""Longest silence of an agent during an action. Restarts of switches and congestion take less."""
REBOOT_SILENCE_S: Final = 1800.0
"""Longest silence if the Workflow survives a reboot of its machine, which may take long."""
_LEAST_BEATS: Final = 5
"""Fewest heartbeats that must be missing, however long their interval is."""
_CHECKS_PER_SILENCE: Final = 20
_TAKEOVER: Final = 3
"""Multiple of the silence after which another replica takes a Workflow over."""
_SEVERAL: Final = 3
"""Number of silent agents from which a cut network of this service is more likely than a failure of each agent."""

log = structlog.get_logger()

_Action = tuple[Key, str, str]
"""Key and uid of a Workflow, and the id of its action."""


@dataclass(frozen=True, slots=True)
class RunningAction:
    """An action that an agent with heartbeats runs."""

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
    def key(self) -> _Action:
        """The key of its heartbeats."""
        return self.workflow.key, self.workflow.metadata.uid, self.action_id

    def belongs_to(self, replica: str) -> bool:
        """Return whether its agent's calls arrive at this replica, or no replica is recorded."""
        return self.workflow.metadata.annotations.get(names.LOG_REPLICA, replica) == replica

    def limit_s(self, silence_s: float) -> float:
        """The longest silence of its agent."""
        policy = self.workflow.metadata.annotations.get(names.ON_REBOOT, reboot.FAIL).strip().lower()
        survives = policy in {reboot.RESTART, reboot.RESUME}
        limit_s = silence_s * REBOOT_SILENCE_S / SILENCE_S if survives else silence_s
        return max(limit_s, _LEAST_BEATS * self.interval_s)


def intervals(workflow: Workflow) -> dict[str, float]:
    """Return the recorded seconds between heartbeats by agent id; empty if the annotation cannot be read."""
    text = workflow.metadata.annotations.get(names.HEARTBEATS, "")
    try:
        return msgspec.json.decode(text, type=dict[str, float]) if text else {}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def heartbeat_annotation(workflow: Workflow, agent_id: str, interval_s: float) -> dict[str, str | None]:
    """Return the annotation with the interval that this agent announces (0: no heartbeats), if it has to change."""
    known = intervals(workflow)
    desired = {agent: seconds for agent, seconds in known.items() if agent != agent_id}
    if interval_s > 0:
        desired[agent_id] = interval_s
    if desired == known:
        return {}
    return {names.HEARTBEATS: msgspec.json.encode(dict(sorted(desired.items()))).decode() if desired else None}


def running_action(workflow: Workflow | None) -> RunningAction | None:
    """Return the running action of a Workflow, or None if no heartbeats are expected."""
    if workflow is None or workflow.status.state != WorkflowState.RUNNING:
        return None
    place = position(workflow)
    if place is None:
        return None
    task = workflow.status.tasks[place[0]]
    interval_s = intervals(workflow).get(task.agent_id, 0.0)
    if interval_s <= 0 or task.actions[place[1]].state != WorkflowState.RUNNING:
        return None
    return RunningAction(workflow, place, interval_s)


def failed_by_silence(running: RunningAction, silent_s: float, *, now: str) -> Change:
    """Return the change that fails the Workflow of an agent that has been silent for `silent_s`."""
    action = running.workflow.status.tasks[running.place[0]].actions[running.place[1]]
    message = (
        f"agent {running.agent_id} sent no sign of life for {silent_s:.0f} s while action {action.name} was running; "
        "its machine may have lost power or network, or its kernel may hang"
    )
    return failed_at(running.workflow, running.agent_id, place=running.place, message=message, now=now)


@dataclass
class Liveness(HeartbeatServiceBase):
    """The gRPC service that receives heartbeats; `run` fails the Workflows of silent agents."""

    writer: WorkflowWriter
    annotator: Annotator
    clock: Clock
    gate: Gate = field(default_factory=Gate)
    replica: str = ""
    silence_s: float = SILENCE_S
    _heard: dict[_Action, float] = field(default_factory=dict)
    _checked_at: float | None = None

    async def Beat(  # noqa: N802 - the name on the wire
        self, stream: grpclib.server.Stream[heartbeat_pb2.BeatRequest, heartbeat_pb2.BeatResponse]
    ) -> None:
        """Receive a heartbeat. It is also answered if the action has ended."""
        request = await receive.message(stream, heartbeat_pb2.BeatRequest)
        receive.check_agent_id(request.agent_id)
        namespace, _, name = request.workflow_id.partition("/")
        workflow = self.writer.index.get(namespace, name)
        if workflow is not None:
            if (reason := self.gate.objection(workflow, request.agent_id, receive.caller_of(stream))) is not None:
                raise GRPCError(Status.PERMISSION_DENIED, reason)
            self.record(workflow, self.gate.agent_ids(request.agent_id), request.action_id)
        await stream.send_message(heartbeat_pb2.BeatResponse())

    def record(self, workflow: Workflow, agent_ids: Sequence[str], action_id: str) -> None:
        """Record a sign of life of the agent with any of these ids that runs this action."""
        if not any(
            task.agent_id in agent_ids and any(action.id == action_id for action in task.actions)
            for task in workflow.status.tasks
        ):
            return
        self._heard[(workflow.key, workflow.metadata.uid, action_id)] = self.clock.monotonic()
        if workflow.metadata.annotations.get(names.LOG_REPLICA, self.replica) != self.replica:
            # The agent's calls arrive here now, so this replica decides on its silence.
            self.annotator.put(workflow.key, names.LOG_REPLICA, self.replica)

    async def run(self) -> None:
        """Check for silent agents until cancelled."""
        pause_s = self.silence_s / _CHECKS_PER_SILENCE
        while True:
            await asyncio.sleep(pause_s)
            await self.check(expected_s=pause_s)

    async def check(self, *, expected_s: float) -> None:
        """Fail the Workflows of silent agents. `expected_s` is the expected time since the previous check."""
        now = self.clock.monotonic()
        if self._checked_at is not None and now - self._checked_at > expected_s + self.silence_s / 4:
            log.warning("liveness timers restarted", seconds=round(now - self._checked_at))
            self._heard.clear()
        self._checked_at = now
        actions = [action for action in map(running_action, self.writer.index.running()) if action is not None]
        keys = {action.key for action in actions}
        self._heard = {key: at for key, at in self._heard.items() if key in keys}
        for action in actions:
            if not action.belongs_to(self.replica):
                self._take_over(action, now)
        own = [action for action in actions if action.belongs_to(self.replica)]
        for action in own:
            self._heard.setdefault(action.key, now)
        silent = [action for action in own if self._is_silent(action)]
        if len(silent) >= _SEVERAL and len(silent) == len(own) and not self._is_long(silent, now):
            log.warning("no agent sends signs of life; the network of this service may be cut", agents=len(silent))
            return
        for action in silent:
            await self._fail(action, now - self._heard[action.key])
        self._checked_at = self.clock.monotonic()

    def _is_silent(self, action: RunningAction) -> bool:
        """Return whether its agent has been silent for too long. It may send a sign of life during a slow write."""
        return self.clock.monotonic() - self._heard[action.key] > action.limit_s(self.silence_s)

    def _is_long(self, silent: list[RunningAction], now: float) -> bool:
        """Return whether the silence has lasted so long that its cause does not matter."""
        return any(now - self._heard[action.key] > 3 * action.limit_s(self.silence_s) for action in silent)

    def _take_over(self, action: RunningAction, now: float) -> None:
        """Take over the agent of another replica, after a silence in which that replica may have been deleted."""
        if now - self._heard.setdefault(action.key, now) > _TAKEOVER * action.limit_s(self.silence_s):
            self._heard[action.key] = now
            self.annotator.put(action.workflow.key, names.LOG_REPLICA, self.replica)

    async def _fail(self, action: RunningAction, silent_s: float) -> None:
        def decide(stored: Workflow | None) -> RunningAction | None:
            current = running_action(stored)
            is_same = current is not None and current.key == action.key and current.belongs_to(self.replica)
            return current if is_same and self._is_silent(action) else None

        def change(current: RunningAction | None) -> Change | None:
            return failed_by_silence(current, silent_s, now=rfc3339(self.clock.now())) if current is not None else None

        workflow = "/".join(action.workflow.key)
        try:
            failed = await self.writer.decide(*action.workflow.key, decide=decide, change=change)
        except ApiError as error:
            log.warning("silent agent not recorded", workflow=workflow, error=error.message)
            return
        if failed is not None:
            metrics.SILENT.inc()
            log.warning("agent is silent", workflow=workflow, agent=action.agent_id, seconds=silent_s)
