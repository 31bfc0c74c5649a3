"""Actions that the asking agent cannot run, found before the first of its actions begins. Pure.

Our agent runs no containers; it names its built-in actions with every request. Agents that name none, such as
upstream's, run any image. A Workflow that would fail in the middle has overwritten a disk by then.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.codec.actionimage import WRAPPER, builtin_name, image_name
from ironbell.services.workflow.changes import Place

ACTIONS_METADATA: Final = "ironbell-actions"
"""Metadata of an agent's requests: its built-in actions, separated by commas."""
LONGEST: Final = 1024
"""Characters of that list that are read."""


def unrunnable(workflow: Workflow, agent_id: str, place: Place, known: Collection[str]) -> tuple[Place, str] | None:
    """The first action that this agent cannot run, with a message; None if there is none.

    Only looked for when `place` is the agent's first action: later, what was done is done.
    """
    tasks = workflow.status.tasks
    if not known or place[1] != 0 or any(task.agent_id == agent_id for task in tasks[: place[0]]):
        return None
    for number, task in enumerate(tasks):
        for position, action in enumerate(task.actions if task.agent_id == agent_id else ()):
            environment = {**task.environment, **action.environment}
            if builtin_name(action.image, command=action.command, environment=environment, known=known) is None:
                return (number, position), _message(action.image, environment.get("IMAGE", ""), known)
    return None


def _message(image: str, wrapped: str, known: Collection[str]) -> str:
    named = f'"{image}" with IMAGE "{wrapped}"' if wrapped and image_name(image) == WRAPPER else f'"{image}"'
    return (
        f"Image {named} is not built into this machine's agent, which runs no containers. No action was run. Use a"
        f" built-in action ({', '.join(sorted({*known, WRAPPER}))}), or boot HookOS, whose agent runs containers."
    )
