"""Servers that a machine of the Tinkerbell provider may claim, and why each of them cannot be claimed for it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ironbell.api.bmc import MACHINE as BMC_MACHINE
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.core import NAMESPACE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.labels import SelectorError
from ironbell.controllers.capt.host import wish
from ironbell.operations.why.model import Object, Query
from ironbell.operations.why.world import World, condition, group_of, ref_of
from ironbell.provisioner.claims_from import UNSET, ClaimRules, claim_rules
from ironbell.provisioner.lifecycle.claiming import WAITING_FOR_HARDWARE
from ironbell.provisioner.lifecycle.names import QUEUED_IN
from ironbell.provisioner.lifecycle.selection import NO_BMCS, Bmcs, Candidate, verdicts

SHOWN: Final = 20
SELECTED_FROM: Final = tuple(Query(kind.group, kind.kind, "") for kind in (HARDWARE, BMC_MACHINE, NAMESPACE))
"""Lists from which a server is selected."""


def waits_for_server(obj: Object) -> bool:
    """Return whether the object is a TinkerbellMachine for which no server can be claimed."""
    is_machine = (group_of(obj), obj["kind"]) == (TINKERBELL_MACHINE.group, TINKERBELL_MACHINE.kind)
    return is_machine and condition(obj, "Ready").get("reason") == WAITING_FOR_HARDWARE


def candidates(obj: Object, world: World) -> list[Candidate]:
    """The servers that were read, as the selection evaluates them for this TinkerbellMachine; the best first."""
    ref = ref_of(obj)
    if ref not in world.candidates:
        servers, bmcs, namespaces = (world.listed(query) for query in SELECTED_FROM)
        world.candidates[ref] = evaluate(
            TINKERBELL_MACHINE.convert(obj),
            [HARDWARE.convert(server) for server in servers],
            {bmc.key: bmc for bmc in map(BMC_MACHINE.convert, bmcs)},
            claim_rules(map(NAMESPACE.convert, namespaces)),
        )
    return world.candidates[ref]


def evaluate(
    machine: TinkerbellMachine, servers: Sequence[Hardware], bmcs: Bmcs = NO_BMCS, claims: ClaimRules = UNSET
) -> list[Candidate]:
    """Evaluate servers for a machine; empty if its label selectors are not valid."""
    label, _, domain = machine.metadata.annotations.get(QUEUED_IN, "").partition("=")
    namespace = machine.metadata.namespace
    try:
        wished = wish(
            machine.spec, failure_domain_label=label, failure_domain=domain, namespace=namespace, claims=claims
        )
    except SelectorError:
        return []
    return verdicts(wished, servers, bmcs)


def as_objects(results: Sequence[Candidate]) -> list[Object]:
    """The best candidates as objects to print, with the result of the selection as their state."""
    objects = [_as_object(*candidate.hardware.key, _state(candidate)) for candidate in results[:SHOWN]]
    rest = len(results) - SHOWN
    return [*objects, _as_object("", "...", f"{rest} more of equal or lower rank")] if rest > 0 else objects


def _as_object(namespace: str, name: str, state: str) -> Object:
    return {"kind": HARDWARE.kind, "metadata": {"namespace": namespace, "name": name}, "status": {"state": state}}


def _state(candidate: Candidate) -> str:
    if not candidate.fits:
        return f"ruled out: {'; '.join(map(str, candidate.problems))}"
    last = f"; claimed only if no better server fits: {'; '.join(candidate.concerns)}" if candidate.concerns else ""
    return f"fits, score {candidate.score}{last}"
