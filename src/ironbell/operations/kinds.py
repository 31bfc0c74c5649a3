"""Which kind and which object a word means, such as `workflow/install-node-1`."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ironbell.api import bmc, capt, cluster, core, tinkerbell
from ironbell.api.kind import Kind
from ironbell.app.registry import KINDS
from ironbell.base.errors import IronbellError, Retry


class UnknownKindError(IronbellError):
    """A word that names no kind of ours."""

    reason, retry = "UnknownKind", Retry.NEVER


def kinds_named(word: str) -> list[Kind[Any]]:
    """All kinds that a word may mean, the most likely first: plural, singular, kind or short name, in any case, with or
    without its group. `machine` is one of a BMC and one of a cluster.

    Raises:
        UnknownKindError: there is none.
    """
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


def parse_target(words: Sequence[str]) -> tuple[list[Kind[Any]], str, bool]:
    """`KIND/NAME`, `KIND NAME` or `NAME` to the kinds that may be meant, the name, and whether no kind was given.

    Raises:
        UnknownKindError: it has another shape, or the kind does not exist.
    """
    if len(words) == 1 and "/" in words[0]:
        kind, _, name = words[0].partition("/")
        if not name:
            raise UnknownKindError(f"{words[0]!r} must be KIND/NAME, such as workflow/install-node-1")
        return kinds_named(kind), name, False
    if len(words) == 2 and "/" not in "".join(words):
        return kinds_named(words[0]), words[1], False
    if len(words) == 1:
        return _with_status(), words[0], True
    raise UnknownKindError(f"{' '.join(words)!r} must be KIND/NAME, KIND NAME or NAME, such as workflow/install-node-1")


def _with_status() -> list[Kind[Any]]:
    """The kinds of which a bare name may be meant, the topmost first."""
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
