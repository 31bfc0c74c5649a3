"""The object that blocks another: from that one down what it depends on, to the deepest finding that explains it. Pure.

The heaviest finding wins: something that needs help before something that is under way, and both before what only
follows from others. Of two alike the deeper one wins, and of two at one depth the one that is followed first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ironbell.api.tinkerbell import HARDWARE
from ironbell.contract.causes import heaviest
from ironbell.operations.why import identity
from ironbell.operations.why.depends import IF_THERE, asked_about, dependencies
from ironbell.operations.why.findings import finding, missing
from ironbell.operations.why.model import Finding, Link, Object, Ref, Why
from ironbell.operations.why.servers import facts, owner_of
from ironbell.operations.why.world import World, group_of, is_deleting, plain, ref_of


@dataclass(frozen=True, slots=True)
class _Path:
    """The way to a finding, from the object that it starts at."""

    refs: tuple[Ref, ...]
    found: Finding


def why(world: World, root: Ref, now: datetime) -> Why:
    """Why the object waits or failed; `is_good` if it does neither."""
    obj = world.get(root)
    known, owner = (facts(obj), owner_of(obj)) if obj is not None and _is_hardware(obj) else ((), None)
    notes = identity.notes(obj) if obj is not None else ()
    path = _heaviest(world, asked_about(root), now, frozenset())
    if path is None:
        what = "nothing that was read blocks it" if world.left_out else _well(obj, known)
        itself, left_out = _link(world, root, now), tuple(world.left_out)
        return Why((itself,), what, is_good=True, facts=known, notes=notes, left_out=left_out, owner=owner)
    chain = tuple(_link(world, ref, now) for ref in path.refs)
    found = path.found
    return Why(
        chain,
        found.what,
        reason=found.reason,
        since=found.since,
        ends_when=found.ends_when,
        remedy=found.remedy,
        needs_help=found.weight.name == "NEEDS_HELP",
        facts=known,
        notes=notes,
        left_out=tuple(world.left_out),
        owner=owner,
    )


def _heaviest(world: World, ref: Ref, now: datetime, above: frozenset[Ref]) -> _Path | None:
    obj = world.get(ref)
    if obj is None:
        found = missing(ref, world) if world.knows(ref) and ref.scope != IF_THERE else None
        return None if found is None else _Path((plain(ref),), found)
    own = finding(obj, world, now)
    seen = above | {plain(ref)}
    following = [below for below in dependencies(obj, ref.scope, world) if plain(below) not in seen]
    if is_deleting(obj):
        # what was deleted before it does not block it
        following = [below for below in following if world.get(below) is not None]
    paths = [path for below in following if (path := _heaviest(world, below, now, seen)) is not None]
    deeper = [_Path((plain(ref), *path.refs), path.found) for path in paths]
    # last: of two alike the deeper one is the cause
    itself = [] if own is None else [_Path((plain(ref),), own)]
    return heaviest([*deeper, *itself], lambda path: path.found.weight)


def _link(world: World, ref: Ref, now: datetime) -> Link:
    obj = world.get(ref)
    found = missing(ref, world) if obj is None else finding(obj, world, now)
    reason, message, time = ("", "", "") if found is None else (found.reason, found.what, found.since)
    group = ref.group or (group_of(obj) if obj is not None else "")
    return Link(ref.kind, group, ref.namespace, ref.name, reason, message, time)


def _is_hardware(obj: Object) -> bool:
    return ref_of(obj).kind == HARDWARE.kind and group_of(obj) == HARDWARE.group


def _well(obj: Object | None, known: tuple[str, ...]) -> str:
    """What is said of an object that nothing blocks."""
    if known:
        return known[0][0].lower() + known[0][1:].removesuffix(".") + "; nothing blocks it"
    state = str((obj or {}).get("status", {}).get("state") or (obj or {}).get("status", {}).get("phase") or "")
    return f"nothing blocks it; its state is {state}" if state else "nothing blocks it"
