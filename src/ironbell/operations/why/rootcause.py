"""Find the object that blocks another: follow its dependencies to the deepest finding that explains it. Pure.

The heaviest finding takes precedence: something that needs help before something under way, and both before what only
follows from others. Of two equal findings the deeper takes precedence; at one depth, the one that is followed first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ironbell.api.tinkerbell import HARDWARE
from ironbell.contract.causes import heaviest
from ironbell.operations.why import identity
from ironbell.operations.why.depends import OPTIONAL, as_root, dependencies
from ironbell.operations.why.findings import finding, missing
from ironbell.operations.why.model import Diagnosis, Finding, Link, Object, Ref
from ironbell.operations.why.servers import facts, owner_of
from ironbell.operations.why.world import World, group_of, is_deleting, plain, ref_of


@dataclass(frozen=True, slots=True)
class _Path:
    """The references from the starting object to a finding."""

    refs: tuple[Ref, ...]
    cause: Finding


def diagnose(world: World, root: Ref, now: datetime) -> Diagnosis:
    """Return why the object waits or failed; `is_good` if it does neither."""
    obj = world.get(root)
    known, owner = (facts(obj), owner_of(obj)) if obj is not None and _is_hardware(obj) else ((), None)
    remarks = identity.remarks(obj) if obj is not None else ()
    path = _heaviest(world, as_root(root), now, frozenset())
    if path is None:
        message = "nothing that was read blocks it" if world.left_out else _good_message(obj, known)
        itself, left_out = _link(world, root, now), tuple(world.left_out)
        return Diagnosis((itself,), message, is_good=True, facts=known, remarks=remarks, left_out=left_out, owner=owner)
    chain = tuple(_link(world, ref, now) for ref in path.refs)
    cause = path.cause
    return Diagnosis(
        chain,
        cause.message,
        reason=cause.reason,
        since=cause.since,
        ends_when=cause.ends_when,
        remedy=cause.remedy,
        needs_help=cause.weight.name == "NEEDS_HELP",
        facts=known,
        remarks=remarks,
        left_out=tuple(world.left_out),
        owner=owner,
    )


def _heaviest(world: World, ref: Ref, now: datetime, above: frozenset[Ref]) -> _Path | None:
    obj = world.get(ref)
    if obj is None:
        cause = missing(ref, world) if world.knows(ref) and ref.scope != OPTIONAL else None
        return None if cause is None else _Path((plain(ref),), cause)
    own = finding(obj, world, now)
    seen = above | {plain(ref)}
    following = [below for below in dependencies(obj, ref.scope, world) if plain(below) not in seen]
    if is_deleting(obj):
        # an object that was already deleted does not block it
        following = [below for below in following if world.get(below) is not None]
    paths = [path for below in following if (path := _heaviest(world, below, now, seen)) is not None]
    deeper = [_Path((plain(ref), *path.refs), path.cause) for path in paths]
    # last: of two equal findings, the deeper is the cause
    itself = [] if own is None else [_Path((plain(ref),), own)]
    return heaviest([*deeper, *itself], lambda path: path.cause.weight)


def _link(world: World, ref: Ref, now: datetime) -> Link:
    obj = world.get(ref)
    cause = missing(ref, world) if obj is None else finding(obj, world, now)
    reason, message, time = ("", "", "") if cause is None else (cause.reason, cause.message, cause.since)
    group = ref.group or (group_of(obj) if obj is not None else "")
    return Link(ref.kind, group, ref.namespace, ref.name, reason, message, time)


def _is_hardware(obj: Object) -> bool:
    return ref_of(obj).kind == HARDWARE.kind and group_of(obj) == HARDWARE.group


def _good_message(obj: Object | None, known: tuple[str, ...]) -> str:
    """Message for an object that nothing blocks."""
    if known:
        return known[0][0].lower() + known[0][1:].removesuffix(".") + "; nothing blocks it"
    state = str((obj or {}).get("status", {}).get("state") or (obj or {}).get("status", {}).get("phase") or "")
    return f"nothing blocks it; its state is {state}" if state else "nothing blocks it"
