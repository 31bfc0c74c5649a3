"""What commands that talk to an API share: where it is, which kind a word means, running a coroutine."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from ironbell.api.kind import Kind
from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.durations import DurationError, parse_seconds
from ironbell.kube.http import HttpApi


class _Seconds(click.ParamType[float]):
    """A duration such as 15s or 500ms."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value)
        try:
            return parse_seconds(f"{text}s" if text.replace(".", "", 1).isdecimal() else text)
        except DurationError:
            self.fail(f"{value!r} is not a duration: write it as 15s, 500ms or 1h30m", param, ctx)


SECONDS = _Seconds()

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class NoApiError(IronbellError):
    """There is no kubeconfig to find the API by."""

    reason = "NoKubeconfig"
    retry = Retry.NEVER


class UnknownKindError(IronbellError):
    """A word that names no kind of ours."""

    reason = "UnknownKind"
    retry = Retry.NEVER


def namespace_options(command: F) -> F:
    """`-n` and `-A`."""
    command = click.option("--namespace", "-n", default="default", show_default=True, help="Namespace.")(command)
    return click.option("--all-namespaces", "-A", is_flag=True, help="All namespaces.")(command)


def kubeconfig_paths(given: Path | None) -> list[Path]:
    """The kubeconfigs to use: what was given, else all of $KUBECONFIG that are there, else the home folder's.

    Raises:
        NoApiError: none was given and none is in the usual places.
    """
    if given is not None:
        return [given]
    named = [Path(text) for text in os.environ.get("KUBECONFIG", "").split(os.pathsep) if text]
    with contextlib.suppress(RuntimeError):  # an account may have no home folder
        named = named or [Path.home() / ".kube" / "config"]
    found = [path for path in named if path.is_file()]
    if found:
        return found
    raise NoApiError("no kubeconfig: give --kubeconfig DIR/kubeconfig (the path that `ironbell up` prints)")


@asynccontextmanager
async def connected(kubeconfig: Path | None, context: str = "") -> AsyncIterator[HttpApi]:
    """The API of a kubeconfig while the block runs; inside a pod without one, that pod's cluster."""
    from ironbell.kube.connection import from_kubeconfig, in_cluster

    try:
        connection = from_kubeconfig(kubeconfig_paths(kubeconfig), context=context)
    except NoApiError:
        if context or "KUBERNETES_SERVICE_HOST" not in os.environ:
            raise
        connection = in_cluster()
    async with HttpApi(connection) as api:
        yield api


def kind_named(word: str) -> Kind[Any]:
    """The kind that a word means: plural, singular, kind or short name, in any case, with or without its group.

    Raises:
        UnknownKindError: there is no such kind.
    """
    return kinds_named(word)[0]


def kinds_named(word: str) -> list[Kind[Any]]:
    """All kinds that a word may mean: `machine` is one of a BMC and one of a cluster.

    Raises:
        UnknownKindError: there is none.
    """
    from ironbell.api import core
    from ironbell.app.registry import KINDS

    name, _, group = word.lower().partition(".")
    kinds: tuple[Kind[Any], ...] = (
        *KINDS,
        core.NAMESPACE,
        core.SECRET,
        core.CONFIG_MAP,
        core.EVENT,
        core.NODE,
        core.LEASE,
        core.SERVICE_ACCOUNT,
        core.CUSTOM_RESOURCE_DEFINITION,
    )
    found = []
    for kind in kinds:
        names = {kind.plural, kind.singular, kind.kind.lower(), *kind.short_names}
        if name in names and (not group or group in {kind.group, f"{kind.version}.{kind.group}"}):
            found.append(kind)
    if found:
        return found
    words = [one for kind in kinds for one in (kind.plural, kind.singular, kind.kind.lower())]
    if group and name in words:
        meant = " or ".join(map(qualified, kinds_named(name)))
        raise UnknownKindError(f'there is no kind "{word.lower()}" here. Did you mean {meant}?')
    if near := difflib.get_close_matches(name, words, n=1, cutoff=0.75):
        raise UnknownKindError(f'there is no kind "{word.lower()}" here. Did you mean "{near[0]}"?')
    times = Counter(kind.plural for kind in kinds)
    known = ", ".join(kind.plural if times[kind.plural] == 1 else qualified(kind) for kind in kinds)
    raise UnknownKindError(f'there is no kind "{word.lower()}" here. Kinds are: {known}.')


def qualified(kind: Kind[Any]) -> str:
    """Plural and group, as they are written on a command line."""
    return f"{kind.plural}.{kind.group}".rstrip(".")


def others_meant(word: str) -> str:
    """A sentence on which of the kinds that a word may mean is shown, and which are not; empty where it means one."""
    shown, *others = kinds_named(word)
    if not others:
        return ""
    return f"These are {qualified(shown)}. There are also {', '.join(map(qualified, others))}."


def object_named(word: str) -> tuple[Kind[Any], str]:
    """`KIND/NAME` to the kind and the name.

    Raises:
        UnknownKindError: it has another shape, or the kind does not exist.
    """
    kinds, name = objects_named(word)
    return kinds[0], name


def objects_named(word: str) -> tuple[list[Kind[Any]], str]:
    """`KIND/NAME` to all kinds that it may mean, and the name.

    Raises:
        UnknownKindError: it has another shape, or the kind does not exist.
    """
    kind, slash, name = word.partition("/")
    if not slash or not name:
        raise UnknownKindError(f"{word!r} must be KIND/NAME, such as workflow/install-node-1")
    return kinds_named(kind), name


def named(words: Sequence[str]) -> tuple[list[Kind[Any]], str, bool]:
    """`KIND/NAME`, `KIND NAME` or `NAME` to the kinds that may be meant, the name, and whether no kind was given.

    Raises:
        UnknownKindError: it has another shape, or the kind does not exist.
    """
    if len(words) == 1 and "/" in words[0]:
        return *objects_named(words[0]), False
    if len(words) == 2 and "/" not in "".join(words):
        return kinds_named(words[0]), words[1], False
    if len(words) == 1:
        return _with_status(), words[0], True
    raise UnknownKindError(f"{' '.join(words)!r} must be KIND/NAME, KIND NAME or NAME, such as workflow/install-node-1")


def _with_status() -> list[Kind[Any]]:
    """The kinds of which a bare name may be meant, the topmost first."""
    from ironbell.api import bmc, capt, cluster, tinkerbell
    from ironbell.app.registry import KINDS

    first: list[Kind[Any]] = [
        cluster.CLUSTER,
        cluster.MACHINE_DEPLOYMENT,
        cluster.MACHINE_SET,
        cluster.MACHINE,
        capt.TINKERBELL_CLUSTER,
        capt.TINKERBELL_MACHINE,
        tinkerbell.WORKFLOW,
        tinkerbell.HARDWARE,
        bmc.MACHINE,
    ]
    return [*first, *(kind for kind in KINDS if kind.has_status and kind not in first)]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine."""
    return asyncio.run(work)
