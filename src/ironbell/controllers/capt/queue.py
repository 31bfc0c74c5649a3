"""The queues of machines that wait for servers: one for each set of servers that they ask for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.contract.paused import PAUSED
from ironbell.kube import finalizers
from ironbell.kube.conditions import is_true
from ironbell.kube.decision import Key
from ironbell.kube.reconciler import Cache, Index
from ironbell.provisioner.claims_from import cached_rules
from ironbell.provisioner.lifecycle.names import WANTED_IN, WANTED_SINCE


def asks_for(obj: TinkerbellMachine) -> str:
    """The same for all machines that ask for the same servers."""
    spec = obj.spec
    where = obj.metadata.annotations.get(WANTED_IN, "")
    wanted = (spec.hardware_affinity, spec.hardware_requirements, where)
    return hashlib.sha256(msgspec.json.encode(wanted)).hexdigest()[:16]


def _in_line(obj: TinkerbellMachine) -> list[str]:
    waits = WANTED_SINCE in obj.metadata.annotations and not obj.spec.hardware_name
    claims_nothing = finalizers.is_deleting(obj) or is_true(obj.status.conditions, PAUSED)
    return [asks_for(obj)] if waits and not claims_nothing else []


IN_LINE: Index[TinkerbellMachine] = Index(TINKERBELL_MACHINE, "capt-in-line", _in_line)
"""Machines that wait for Hardware, by what they ask for."""
WAITING: Index[TinkerbellMachine] = Index(
    TINKERBELL_MACHINE, "capt-waiting", lambda obj: ["waiting"] if _in_line(obj) else []
)


def place_of(cache: Cache, obj: TinkerbellMachine, *, of_cluster: bool = False) -> int:
    """How many wait before a machine for the same servers."""
    mine = _order(obj)
    ahead = (other for other in _alike(cache, obj) if _order(other) < mine)
    return sum(1 for other in ahead if not of_cluster or _cluster_of(other) == _cluster_of(obj))


def _alike(cache: Cache, obj: TinkerbellMachine) -> Iterable[TinkerbellMachine]:
    """Those who wait for the same servers: of one namespace alone where that decides which servers these are."""
    found = cache.indexed(IN_LINE, asks_for(obj))
    if not cached_rules(cache).are_set:
        return found
    return [other for other in found if other.metadata.namespace == obj.metadata.namespace]


def _cluster_of(obj: TinkerbellMachine) -> Key:
    return obj.metadata.namespace, obj.metadata.labels.get(LABEL_CLUSTER_NAME, "")


def _order(obj: TinkerbellMachine) -> tuple[str, Key]:
    return obj.metadata.annotations.get(WANTED_SINCE, "~"), obj.key


def first_in_line(cache: Cache, namespace: str = "") -> Iterable[Key]:
    """Who is to look again because a server became free: the first of each line, not all who wait.

    With a namespace, of those that may claim servers there.
    """
    rules = cached_rules(cache)
    firsts: dict[tuple[str, str], TinkerbellMachine] = {}
    for obj in cache.indexed(WAITING, "waiting"):
        own = obj.metadata.namespace
        if namespace and not rules.allow(namespace, own):
            continue
        asked = asks_for(obj), own if rules.are_set else ""
        if asked not in firsts or _order(obj) < _order(firsts[asked]):
            firsts[asked] = obj
    return [obj.key for obj in firsts.values()]


def behind(cache: Cache, gone: TinkerbellMachine) -> Sequence[Key]:
    """Who is first now that this machine has left the line."""
    first = min(_alike(cache, gone), key=_order, default=None)
    return [first.key] if first is not None and first.key != gone.key else []
