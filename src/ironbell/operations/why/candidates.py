"""Dependencies of a machine of the Tinkerbell provider, and why each server cannot be claimed for it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from ironbell.api.bmc import JOB
from ironbell.api.bmc import MACHINE as BMC_MACHINE
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.client import Forbidden, ListOptions, Selector
from ironbell.api.core import NAMESPACE
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.base.labels import SelectorError
from ironbell.controllers.capt.host import wish
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.discovered import Object
from ironbell.operations.objects import find_object
from ironbell.provisioner.claims_from import UNSET, ClaimRules, claim_rules
from ironbell.provisioner.lifecycle.created import power_off_name, wipe_name
from ironbell.provisioner.lifecycle.names import QUEUED_IN
from ironbell.provisioner.lifecycle.selection import NO_BMCS, Bmcs, Candidate, verdicts

SHOWN: Final = 20


async def of_machine(api: HttpApi, machine_object: Object) -> AsyncIterator[Object]:
    """Yield the machine's Workflows, its power-off Job and its server; without a server, every server with its
    objections."""
    machine = TINKERBELL_MACHINE.convert(machine_object)
    namespace = machine.status.target_namespace or machine.metadata.namespace
    for kind, name in (
        (WORKFLOW, machine.metadata.name),
        (WORKFLOW, wipe_name(machine)),
        (JOB, power_off_name(machine)),
        (HARDWARE, machine.spec.hardware_name),
    ):
        if name and (obj := await find_object(api, kind, namespace, name)) is not None:
            yield obj
    if not machine.spec.hardware_name and machine.metadata.deletion_timestamp is None:
        page = await api.list(HARDWARE.collection, "", ListOptions(Selector()))
        bmcs = [
            BMC_MACHINE.decode(i) for i in (await api.list(BMC_MACHINE.collection, "", ListOptions(Selector()))).items
        ]
        servers = [HARDWARE.decode(item) for item in page.items]
        rules = await _claim_rules(api)
        for candidate in candidates(machine, servers, {bmc.key: bmc for bmc in bmcs}, rules):
            yield candidate


async def _claim_rules(api: HttpApi) -> ClaimRules:
    """Rules for claims of servers in other namespaces; unset for users who may not read Namespaces."""
    with contextlib.suppress(Forbidden):
        page = await api.list(NAMESPACE.collection, "", ListOptions(Selector()))
        return claim_rules(NAMESPACE.decode(item) for item in page.items)
    return UNSET


def candidates(
    machine: TinkerbellMachine, servers: Sequence[Any], bmcs: Bmcs = NO_BMCS, claims: ClaimRules = UNSET
) -> list[Object]:
    """Every server as an object to print, with the result of the selection as its state; the best first."""
    label, _, domain = machine.metadata.annotations.get(QUEUED_IN, "").partition("=")
    try:
        wished = wish(
            machine.spec,
            failure_domain_label=label,
            failure_domain=domain,
            namespace=machine.metadata.namespace,
            claims=claims,
        )
    except SelectorError:
        return []
    results = verdicts(wished, servers, bmcs)
    objects = [_as_object(candidate) for candidate in results[:SHOWN]]
    if len(results) > SHOWN:
        rest = f"{len(results) - SHOWN} more of equal or lower rank"
        objects.append({"kind": "Hardware", "metadata": {"namespace": "", "name": "..."}, "status": {"state": rest}})
    return objects


def _as_object(candidate: Candidate) -> Object:
    namespace, name = candidate.hardware.key
    last = f"; claimed only if no better server fits: {'; '.join(candidate.concerns)}" if candidate.concerns else ""
    state = (
        f"fits, score {candidate.score}{last}"
        if candidate.fits
        else f"ruled out: {'; '.join(map(str, candidate.problems))}"
    )
    return {"kind": "Hardware", "metadata": {"namespace": namespace, "name": name}, "status": {"state": state}}
