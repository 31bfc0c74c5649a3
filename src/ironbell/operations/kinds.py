"""The kind and the object that a command-line argument names, such as `workflow/install-node-1`."""

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
    """A word that does not name a kind."""

    reason, retry = "UnknownKind", Retry.NEVER


def kinds_named(word: str) -> list[Kind[Any]]:
    """All kinds that a word may mean, the most likely first: plural, singular, kind or short name, in any case, with or
    without its group. `machine` is a kind of BMCs and a kind of clusters.

    Raises:
        UnknownKindError: there is no such kind.
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
    matches = []
    for kind in kinds:
        names = {kind.plural, kind.singular, *kind.short_names}
        if name in names and (not group or group in {kind.group, f"{kind.version}.{kind.group}"}):
            matches.append(kind)
    if matches:
        return matches
    words = [form for kind in kinds for form in (kind.plural, kind.singular)]
    if group and name in words:
        meant = " or ".join(map(qualified, kinds_named(name)))
        raise UnknownKindError(f'"{word.lower()}" is not a known kind. Did you mean {meant}?')
    if near := difflib.get_close_matches(name, words, n=1, cutoff=0.75):
        raise UnknownKindError(f'"{word.lower()}" is not a known kind. Did you mean "{near[0]}"?')
    times = Counter(kind.plural for kind in kinds)
    known = ", ".join(kind.plural if times[kind.plural] == 1 else qualified(kind) for kind in kinds)
    raise UnknownKindError(f'"{word.lower()}" is not a known kind. Known kinds: {known}.')


def qualified(kind: Kind[Any]) -> str:
    """Plural and group, as they are written on a command line."""
    return f"{kind.plural}.{kind.group}".rstrip(".")


def others_meant(word: str) -> str:
    """A sentence about the kind that is shown and the others that the word may mean; empty if it means only one."""
    shown, *others = kinds_named(word)
    if not others:
        return ""
    return f"This table shows {qualified(shown)}. The word also means {', '.join(map(qualified, others))}."


def parse_target(words: Sequence[str]) -> tuple[list[Kind[Any]], str, bool]:
    """Parse `KIND/NAME`, `KIND NAME` or `NAME`: the kinds it may mean, the name, and whether no kind was named.

    Raises:
        UnknownKindError: the words have another form, or the kind does not exist.
    """
    if len(words) == 1 and "/" in words[0]:
        kind, _, name = words[0].partition("/")
        if not name:
            raise UnknownKindError(f"{words[0]!r} is not KIND/NAME, such as workflow/install-node-1")
        return kinds_named(kind), name, False
    if len(words) == 2 and "/" not in "".join(words):
        return kinds_named(words[0]), words[1], False
    if len(words) == 1:
        return _with_status(), words[0], True
    raise UnknownKindError(f"{' '.join(words)!r} is not KIND/NAME, KIND NAME or NAME, such as workflow/install-node-1")


def _with_status() -> list[Kind[Any]]:
    """The kinds that a bare name may mean, the topmost first."""
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
