"""Moving an installation that keeps failing on one server to another, through a new Machine. Pure.

A TinkerbellMachine keeps its server for life (`spec.providerID` cannot change), and its bootstrap data may be used up.
So the Machine's owner is asked to replace it; the new Machine claims another server, because this one ranks behind all
others by then. Where the same owner's installations failed on several servers already, the servers are hardly the
cause, and the attempts end on this one.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ironbell.api.cluster import MACHINE
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_REMEDIATE_MACHINE
from ironbell.api.meta import Condition, to_builtin
from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.clock import rfc3339
from ironbell.base.labels import SelectorError
from ironbell.contract.conditions.legacy import WARNING, legacy_conditions, legacy_false, set_legacy
from ironbell.contract.machine_failure import is_health_checked
from ironbell.contract.owners import controller_of
from ironbell.controllers.capt.conditions import with_all
from ironbell.controllers.capt.host import wish
from ironbell.controllers.capt.observed import Observed, owner_text
from ironbell.controllers.capt.progress import Progress
from ironbell.controllers.capt.remediation import HEALTH_CHECK_SUCCEEDED, OWNER_REMEDIATED
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Action, Decision, patch, patch_status
from ironbell.provisioner.health import INSTALL_FAILED, InstallFailures, Severity, install_failures
from ironbell.provisioner.lifecycle.names import INSTALLED, SERVERS_PER_OWNER, State
from ironbell.provisioner.lifecycle.selection import pick, verdict

_REASON: Final = "InstallationFailed"
_MESSAGE_LIMIT: Final = 400


def move(progress: Progress, observed: Observed, tried: int, why: str) -> Decision | None:
    """Have the Machine replaced, if another server fits; None if the installation is to be tried here again."""
    machine, hardware = observed.machine, observed.hardware
    if machine is None or hardware is None or controller_of(machine) is None:
        return None
    failed = f"Installation failed {tried} times on Hardware {'/'.join(hardware.key)}: {why}."
    asked = find_condition(machine.status.conditions, OWNER_REMEDIATED)
    if (asked is not None and asked.status == "False") or ANNOTATION_REMEDIATE_MACHINE in machine.metadata.annotations:
        state = f" The Machine's owner answers: {asked.message}" if asked is not None and asked.message else ""
        return _waits(progress, f"{failed} The Machine is being replaced, to be installed on another server.{state}")
    other = _other(observed)
    if other is None:
        return None
    message = f"{failed} The Machine is being replaced, because Hardware {'/'.join(other.key)} fits as well."
    mark = mark_server(progress, observed, tried, why)
    return _waits(progress, message, mark, _replace(progress, machine, failed))


def mark_server(progress: Progress, observed: Observed, times: int, why: str) -> Action | None:
    """Note on the Hardware that installations failed on it, once, so that others are claimed before it."""
    hardware, metadata = observed.hardware, observed.obj.metadata
    if hardware is None:
        return None
    known = install_failures(hardware)
    if known is not None and (known.uid, known.times) == (metadata.uid, times):
        return None
    failures = InstallFailures(
        machine=f"{metadata.namespace}/{metadata.name}",
        uid=metadata.uid,
        owner=owner_text(observed.machine),
        times=times,
        at=rfc3339(progress.now),
        message=why[:_MESSAGE_LIMIT],
    )
    text = msgspec.json.encode(failures).decode()
    return patch(HARDWARE, hardware, {"metadata": {"annotations": {INSTALL_FAILED: text}}}, locked=True)


def _waits(progress: Progress, message: str, *actions: Action | None) -> Decision:
    progress.state = State.FAILED
    progress.note(INSTALLED, False, "Replacing", message)
    return progress.waits("Replacing", message, *actions)


def _other(observed: Observed) -> Hardware | None:
    """A server without concerns that fits, if moving there makes sense."""
    if len(observed.failed_servers) + 1 >= SERVERS_PER_OWNER:
        return None
    label, _, domain = observed.wanted_in.partition("=")
    try:
        wished = wish(
            observed.obj.spec,
            failure_domain_label=label,
            failure_domain=domain,
            namespace=observed.obj.metadata.namespace,
            claims=observed.claims,
        )
    except SelectorError:
        return None
    found = pick(wished, observed.servers, 0, observed.silent_bmcs)
    if found is None or verdict(wished, found, observed.silent_bmcs).severity is not Severity.NONE:
        return None
    return found


def _replace(progress: Progress, machine: Machine, why: str) -> Action:
    """Ask the owner; where a MachineHealthCheck watches the Machine, through that, so that it does not contradict."""
    if is_health_checked(machine):
        return patch(MACHINE, machine, {"metadata": {"annotations": {ANNOTATION_REMEDIATE_MACHINE: ""}}}, locked=True)
    conditions = [
        Condition(type=HEALTH_CHECK_SUCCEEDED, status="False", reason=_REASON, message=why),
        Condition(
            type=OWNER_REMEDIATED, status="False", reason="WaitingForRemediation", message="Waiting for remediation"
        ),
    ]
    older = legacy_conditions(machine)
    for kind, reason in ((HEALTH_CHECK_SUCCEEDED, _REASON), (OWNER_REMEDIATED, "WaitingForRemediation")):
        older = set_legacy(older, legacy_false(kind, reason, WARNING), now=progress.now)
    status = {
        "conditions": to_builtin(with_all(machine.status.conditions, conditions, progress.now)),
        "deprecated": {"v1beta1": {"conditions": to_builtin(older)}},
    }
    return patch_status(MACHINE, machine, status)
