"""From the last action of an installation to a machine that is ready: its system must prove that it is up. Pure.

There are two proofs, and either is enough: a report of the system, and a Node of its cluster on this server whose
kubelet reports. Where there is neither in time the bootstrap counts as failed, so that a health check replaces the
machine; but not while nobody can tell, because the cluster does not answer.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.names import ANNOTATION_PROVISIONED
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.contract.bootstrap_failure import CONDITION as BOOTSTRAP_SUCCEEDED
from ironbell.contract.machine_failure import BOOTSTRAP_FAILED
from ironbell.controllers.capt.conditions import READY
from ironbell.controllers.capt.installed_node import NOTICED, Sight, look
from ironbell.controllers.capt.observed import Observed
from ironbell.controllers.capt.progress import Progress
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Action, Decision, emit, patch
from ironbell.provisioner.health import INSTALL_FAILED
from ironbell.provisioner.installed_system import (
    SystemFailure,
    has_reported,
    hides_failure,
    installation_ended,
    moment,
    reported_failure,
)
from ironbell.provisioner.lifecycle.names import (
    DEFAULT_REPORT_TIMEOUT_S,
    INSTALL_BEGUN,
    INSTALLED,
    REPORT_TIMEOUT,
    State,
    number,
)

NO_REPORT: Final = "NoReport"
_DOUBTFUL: Final = (
    "The system reports success whether kubeadm has succeeded or not, because postKubeadmCommands follow it."
)
BOOTSTRAP_TAKES: Final = timedelta(hours=2)
"""At most, from the end of the installation; what the system of a Node reports after that is of a later boot."""
OUTPUT_S: Final = 15.0
"""How long a failed system has for sending its output: who remediates the machine switches it off."""


def boots(progress: Progress, observed: Observed, workflow: Workflow, hardware: Hardware) -> Decision:
    """The next step for a machine whose Workflow has succeeded."""
    ended = installation_ended(workflow)
    failure = reported_failure(hardware, ended)
    if failure is not None:
        return failed(progress, hardware, failure)
    sight = look(hardware, observed.new_nodes, ended, progress.now)
    reported = has_reported(hardware, ended)
    doubtful = hides_failure(hardware.spec.user_data or "")
    if reported and not doubtful:
        return installed(progress, hardware, "The installed system reported that it is up.")
    if sight.node is not None:
        return installed(progress, hardware, f"Node {sight.node.name} runs on the server, and its kubelet reports.")
    patience_s = number(observed.obj, REPORT_TIMEOUT, DEFAULT_REPORT_TIMEOUT_S)
    if patience_s == 0:
        return installed(progress, hardware, f"The installed system is not waited for: {REPORT_TIMEOUT} is 0.")
    waited_s = _waited_s(ended, progress.now, patience_s)
    if waited_s >= patience_s:
        return _is_silent(progress, observed, hardware, sight, patience_s, reported=reported)
    progress.state = State.BOOTING
    waits_for = "its Node" if doubtful else "the operating system's first report or its Node"
    message = f"Installed. Waiting for {waits_for} (times out after {patience_s} s)."
    if doubtful and reported:
        message += f" {_DOUBTFUL}"
    progress.note(INSTALLED, False, "Booting", message)
    left = [limit_s - waited_s for limit_s in (patience_s, NOTICED.total_seconds()) if limit_s > waited_s]
    return replace(progress.waits("Booting", message, after_s=min(left)), needs=sight.needs)


def failed(progress: Progress, hardware: Hardware, failure: SystemFailure) -> Decision:
    """The installed system reported that its bootstrap failed."""
    progress.state = State.FAILED
    message = f"Server {hardware.metadata.name}: {failure.text()}"
    at = moment(failure.at)
    left_s = OUTPUT_S - (progress.now - at).total_seconds() if at is not None and not failure.output else 0.0
    if left_s > 0 and not _was_noted(progress):
        return progress.waits(BOOTSTRAP_FAILED, f"{message} It may still come.", after_s=left_s)
    progress.note(BOOTSTRAP_SUCCEEDED, False, BOOTSTRAP_FAILED, message)
    if not progress.obj.status.ready:
        progress.note(INSTALLED, False, BOOTSTRAP_FAILED, message)
    news = None if _was_noted(progress) else _event(progress, message)
    return progress.waits(BOOTSTRAP_FAILED, message, news)


def failure_of(observed: Observed, hardware: Hardware) -> SystemFailure | None:
    """What the present system of a machine that is ready reported of its bootstrap: a Node may be there before kubeadm
    has ended. What fails at a later boot of a Node is no matter of its bootstrap."""
    workflow, machine = observed.workflow, observed.machine
    begun = moment(observed.obj.metadata.annotations.get(INSTALL_BEGUN, ""))
    ended = installation_ended(workflow) if workflow is not None else begun
    failure = reported_failure(hardware, ended)
    at = moment(failure.at) if failure is not None else None
    has_node = machine is not None and bool(machine.status.node_ref.name)
    is_later = at is not None and ended is not None and at - ended > BOOTSTRAP_TAKES
    return None if has_node and is_later else failure


def installed(progress: Progress, hardware: Hardware, how: str) -> Decision:
    """The system is up: record it on the Hardware, and be ready."""
    # Until the server says so a crash would only bring us here again.
    annotations = {ANNOTATION_PROVISIONED: "true", INSTALL_FAILED: None}
    mark = patch(HARDWARE, hardware, {"metadata": {"annotations": annotations}}, locked=True)
    return is_up(progress, mark, emit(TINKERBELL_MACHINE, progress.obj, reason="Installed", message=how))


def is_up(progress: Progress, *actions: Action) -> Decision:
    """Be ready."""
    progress.state = State.RUNNING
    progress.provisioned()
    progress.note(INSTALLED, True, "Installed")
    if find_condition(progress.obj.status.conditions, BOOTSTRAP_SUCCEEDED) is not None:
        progress.note(BOOTSTRAP_SUCCEEDED, True, "Succeeded")
    progress.note(READY, True, "Ready")
    return progress.goes_on(*actions)


def _is_silent(
    progress: Progress, observed: Observed, hardware: Hardware, sight: Sight, patience_s: int, *, reported: bool
) -> Decision:
    """There was no report in time that proves anything, and there is no Node that anybody can see."""
    server = f"Server {hardware.metadata.name} was installed"
    silent = f"{server}, but its operating system did not report within {patience_s} s"
    if reported:
        silent = f"{server} and reported that it is up. {_DOUBTFUL} {patience_s} s have passed"
    if not sight.is_absent and not _is_first(observed):
        progress.state = State.BOOTING
        why = f" ({sight.problem})" if sight.problem else ""
        message = f"{silent}, and its cluster cannot be asked for its Node{why}."
        progress.note(INSTALLED, None, NO_REPORT, message)
        return replace(progress.waits(NO_REPORT, message), needs=sight.needs)
    message = (
        f"{silent}, and its cluster has no Node of it. Look at the server's console; delete the Machine to try again, "
        f"or raise the annotation {REPORT_TIMEOUT}."
    )
    progress.state = State.FAILED
    progress.note(INSTALLED, False, NO_REPORT, message)
    progress.note(BOOTSTRAP_SUCCEEDED, False, NO_REPORT, message)
    news = None if _was_noted(progress) else _event(progress, message)
    return replace(progress.waits(NO_REPORT, message, news), needs=sight.needs)


def _is_first(observed: Observed) -> bool:
    """Whether the cluster's API is to run on this machine, so that there is nobody else to ask."""
    machine, cluster = observed.machine, observed.cluster
    if machine is None or cluster is None or LABEL_CONTROL_PLANE not in machine.metadata.labels:
        return False
    return not cluster.status.initialization.control_plane_initialized


def _was_noted(progress: Progress) -> bool:
    found = find_condition(progress.obj.status.conditions, BOOTSTRAP_SUCCEEDED)
    return found is not None and found.status == "False"


def _event(progress: Progress, message: str) -> Action:
    return emit(TINKERBELL_MACHINE, progress.obj, reason=BOOTSTRAP_FAILED, message=message, warning=True)


def _waited_s(ended: datetime | None, now: datetime, patience_s: int) -> float:
    return (now - ended).total_seconds() if ended is not None else float(patience_s)
