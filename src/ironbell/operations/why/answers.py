"""Find out why an object waits or failed, with its related objects."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ironbell.api import core
from ironbell.api.client import Forbidden
from ironbell.api.kind import Kind
from ironbell.base.clock import SystemClock
from ironbell.base.errors import IronbellError, Retry
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.discovered import Discovered, NoSuchKindError
from ironbell.operations.kinds import qualified
from ironbell.operations.namespaces import elsewhere
from ironbell.operations.objects import find_object
from ironbell.operations.why.model import Diagnosis, Object
from ironbell.operations.why.reader import read_world
from ironbell.operations.why.related import list_objects, related
from ironbell.operations.why.rootcause import diagnose
from ironbell.operations.why.text import Explanation, explain
from ironbell.operations.why.world import ref_of


class NoMatchingObjectError(IronbellError):
    """There is no object of these kinds and this name."""

    reason, retry = "NothingThere", Retry.NEVER

    def __init__(self, message: str, namespace: str, name: str) -> None:
        super().__init__(message)
        self.namespace, self.name = namespace, name


@dataclass(frozen=True, slots=True)
class Answer:
    """The diagnosis of one object."""

    diagnosis: Diagnosis
    related: tuple[Explanation, ...] = ()
    """The object and its dependencies, if they were requested."""
    also: tuple[str, ...] = ()
    """Other kinds that have an object of this name, if no kind was requested."""


async def answers(
    api: HttpApi, kinds: Sequence[Kind[Any]], namespace: str, name: str, *, bare: bool = False, wide: bool = False
) -> list[Answer]:
    """Answers for the objects of a name, one for each kind; with `bare`, only the first. `wide` adds related objects.

    Raises:
        NoMatchingObjectError: there is no such object; the message names the namespaces that have one.
        NoSuchKindError: the API has none of the kinds.
    """
    now, forbidden = SystemClock().now(), list[str]()
    roots: list[tuple[Kind[Any], Object]] = []
    for kind in kinds:
        try:
            root = await find_object(api, kind, namespace, name)
        except Forbidden:
            forbidden.append(qualified(kind))
            continue
        roots += [] if root is None else [(kind, root)]
    if not roots:
        raise await _no_matching_object(api, kinds, namespace, name, bare=bare, forbidden=forbidden)
    also = tuple(qualified(kind) for kind, _ in roots[1:]) if bare else ()
    events = await _events(api, namespace) if wide else []
    results = []
    for kind, root in roots[:1] if bare else roots:
        world = await read_world(api, root)
        explained: list[Explanation] = []
        if wide:
            explained = [explain(root, events, now, with_group=len(roots) > 1)]
            # objects that the user may not read end the list; the diagnosis names them
            with contextlib.suppress(Forbidden):
                async for obj in related(api, kind, root):
                    explained.append(explain(obj, events, now))
        results.append(Answer(diagnose(world, ref_of(root), now), tuple(explained), also))
    return results


async def _no_matching_object(
    api: HttpApi, kinds: Sequence[Kind[Any]], namespace: str, name: str, *, bare: bool, forbidden: list[str]
) -> NoMatchingObjectError:
    if not bare:
        await _require_installed(api, kinds)
    known = "the kinds that can wait" if bare else " or ".join(qualified(kind) for kind in kinds)
    hints = [] if bare else [await elsewhere(api, kind.collection, namespace, name) for kind in kinds]
    hints += [f"Not read, because access is forbidden: {', '.join(forbidden)}."] if forbidden else []
    hint = " ".join(dict.fromkeys(filter(None, hints))) or "Use -n to select another namespace."
    message = f'No object named "{name}" exists among {known} in namespace "{namespace}". {hint}'
    return NoMatchingObjectError(message, namespace, name)


async def _require_installed(api: HttpApi, kinds: Sequence[Kind[Any]]) -> None:
    """Raise NoSuchKindError if the API has none of these kinds."""
    discovered, absent = Discovered(api), []
    for kind in kinds:
        try:
            await discovered.collection(kind.group, kind.kind)
        except NoSuchKindError as error:
            absent.append(error)
    if len(absent) == len(kinds):
        raise absent[0]


async def _events(api: HttpApi, namespace: str) -> list[Object]:
    """The events of a namespace; none if they may not be read."""
    with contextlib.suppress(Forbidden):
        return await list_objects(api, core.EVENT, namespace)
    return []
