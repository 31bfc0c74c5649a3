"""The output of a Workflow's actions, live or afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import msgspec

from ironbell.api.client import ApiError, NotFound
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.base.clock import SystemClock
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.servers.boot_progress import LOG_PREFIX
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.namespaces import elsewhere
from ironbell.operations.objects import find_object
from ironbell.operations.why.reader import read_world
from ironbell.operations.why.rootcause import diagnose
from ironbell.operations.why.text import first_line
from ironbell.operations.why.world import ref_of

LIST_COMMAND: Final = "`ironbell get workflows -A`"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Selection and form of a log's lines."""

    follow: bool = False
    """Whether to continue until the Workflow ends."""
    action: str = ""
    """Name or id of the only action; empty for all."""
    tail: int | None = None
    """Number of the existing lines; None for all."""
    timestamps: bool = False
    as_json: bool = False

    @property
    def query(self) -> dict[str, str]:
        """The query parameters of the request."""
        parameters = {"follow": "true" * self.follow, "action": self.action, "format": "json" * self.as_json}
        parameters |= {"tail": "" if self.tail is None else str(self.tail), "timestamps": "true" * self.timestamps}
        return {name: value for name, value in parameters.items() if value}


class LogNotServedError(IronbellError):
    """The API serves no logs; `lines` are those that the Workflow itself has, without times."""

    reason, retry = "LogNotServed", Retry.NEVER

    def __init__(self, message: str, lines: list[str]) -> None:
        super().__init__(message)
        self.lines = lines


async def read_log(api: HttpApi, namespace: str, name: str, options: LogOptions) -> AsyncIterator[bytes]:
    """The log of a Workflow in pieces.

    Raises:
        LogNotServedError: the API serves no logs, and the Workflow has some lines.
        NotFound: there is no such Workflow; the message names the namespaces that have one.
        IronbellError: there is no log.
    """
    try:
        async for piece in api.stream(WORKFLOW.collection.path(namespace, name, "log"), query=options.query):
            if piece:
                yield piece
    except NotFound as error:
        kept = await _kept(api, namespace, name, options)
        if kept:
            raise LogNotServedError(f"no logs of workflow {namespace}/{name}: {error}", kept) from error
        raise await _no_log_error(api, namespace, name, error) from error
    except ApiError as error:
        message = f"no logs of workflow {namespace}/{name}: {error}"
        raise ApiError(message, code=error.code, reason=error.reason) from error


async def _no_log_error(api: HttpApi, namespace: str, name: str, error: NotFound) -> IronbellError:
    """The error about a missing Workflow, with the namespaces that have one; or the API's response about its logs."""
    hint = await elsewhere(api, WORKFLOW.collection, namespace, name)
    if await find_object(api, WORKFLOW, namespace, name) is None:
        hint = hint or f"{LIST_COMMAND} lists all."
        return NotFound(f'Workflow "{name}" does not exist in namespace "{namespace}". {hint}')
    return IronbellError(f"no logs of workflow {namespace}/{name}: {error}. {hint}".strip())


async def empty_log_reason(api: HttpApi, namespace: str, name: str) -> str:
    """The reason of an empty log: what the Workflow waits for, or that its actions printed nothing."""
    root, now = await find_object(api, WORKFLOW, namespace, name), SystemClock().now()
    if root is None:
        raise await _no_log_error(api, namespace, name, NotFound("404"))
    answer = diagnose(await read_world(api, root), ref_of(root), now)
    if answer.is_good:
        return f"The actions of workflow {namespace}/{name} have printed nothing, or their logs were removed."
    return f"Workflow {namespace}/{name} has no logs yet. {first_line(answer, now)}"


async def _kept(api: HttpApi, namespace: str, name: str, options: LogOptions) -> list[str]:
    """The lines that the Workflow itself has; none if the options need more."""
    if options.as_json or options.follow:
        return []
    try:
        workflow = WORKFLOW.decode(await api.get(WORKFLOW.collection, namespace, name))
    except ApiError:
        return []
    lines = kept_lines(workflow, action=options.action)
    return lines[-options.tail :] if options.tail else lines


class _Kept(msgspec.Struct):
    lines: list[str] = []


def kept_lines(workflow: Workflow, *, action: str = "") -> list[str]:
    """The last lines of every action that has ended, or of one, as the workflow service records them on the
    Workflow."""
    lines: list[str] = []
    for action_ in (action_ for task in workflow.status.tasks for action_ in task.actions):
        text = workflow.metadata.annotations.get(f"{LOG_PREFIX}{action_.id}")
        if text is None or action not in {"", action_.name, action_.id}:
            continue
        with contextlib.suppress(msgspec.MsgspecError):
            lines += [f"{action_.name} | {line}" for line in msgspec.json.decode(text, type=_Kept).lines]
    return lines
