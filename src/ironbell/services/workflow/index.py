"""Workflows in memory, by agent, with a way to wait for a change of one agent's Workflows.

An informer feeds it, and the service adds each Workflow that it has written, so that it reads its own writes. A change
wakes only the agents that the Workflow names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState

Key = tuple[str, str]


@dataclass
class WorkflowTable:
    """The index. Informer events reach it through `follow`."""

    _objects: dict[Key, Workflow] = field(default_factory=dict)
    _by_agent: dict[str, dict[Key, Workflow]] = field(default_factory=dict)
    _running: dict[Key, Workflow] = field(default_factory=dict)
    _waiting: dict[str, set[asyncio.Future[None]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._objects)

    def workflows_for(self, agent_id: str) -> Sequence[Workflow]:
        """Workflows whose `status.agentID` is `agent_id`."""
        return list(self._by_agent.get(agent_id, {}).values())

    def get(self, namespace: str, name: str) -> Workflow | None:
        return self._objects.get((namespace, name))

    def running(self) -> Sequence[Workflow]:
        return list(self._running.values())

    def upsert(self, workflow: Workflow) -> None:
        """Store a Workflow; a version that is older than the stored one is ignored."""
        known = self._objects.get(workflow.key)
        if known is not None:
            if _is_older(workflow, known):
                return
            self._drop(known)
        self._objects[workflow.key] = workflow
        self._by_agent.setdefault(workflow.status.agent_id, {})[workflow.key] = workflow
        if workflow.status.state == WorkflowState.RUNNING:
            self._running[workflow.key] = workflow
        self._wake(workflow)

    def remove(self, namespace: str, name: str) -> None:
        known = self._objects.pop((namespace, name), None)
        if known is not None:
            self._drop(known)

    def follow(self, old: Workflow | None, new: Workflow | None) -> None:
        """Apply a change that an informer observed."""
        if new is not None:
            self.upsert(new)
        elif old is not None:
            self.remove(*old.key)

    async def changed(self, *agent_ids: str) -> None:
        """Return when a Workflow of an agent with any of these ids has changed after this was awaited.

        The wait is registered before the first suspension, so that `if nothing: await changed()` misses no change.
        """
        future = asyncio.get_running_loop().create_future()
        for agent_id in agent_ids:
            self._waiting.setdefault(agent_id, set()).add(future)
        try:
            await future
        finally:
            for agent_id in agent_ids:
                self._waiting[agent_id].discard(future)
                if not self._waiting[agent_id]:
                    del self._waiting[agent_id]

    def _drop(self, workflow: Workflow) -> None:
        self._running.pop(workflow.key, None)
        entry = self._by_agent.get(workflow.status.agent_id)
        if entry is not None:
            entry.pop(workflow.key, None)
            if not entry:
                del self._by_agent[workflow.status.agent_id]
        self._wake(workflow)

    def _wake(self, workflow: Workflow) -> None:
        for agent_id in {workflow.status.agent_id, *(task.agent_id for task in workflow.status.tasks)}:
            for future in self._waiting.get(agent_id, ()):
                if not future.done():
                    future.set_result(None)


def _is_older(new: Workflow, known: Workflow) -> bool:
    """Return whether `new` is an older version of the same object. Versions that are not numbers are never older."""
    if new.metadata.uid != known.metadata.uid:
        return False
    versions = (new.metadata.resource_version, known.metadata.resource_version)
    return all(version.isdecimal() for version in versions) and int(versions[0]) < int(versions[1])
