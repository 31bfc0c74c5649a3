"""From the last action of an installation to a machine that is ready: its system must prove that it is up. Pure.

There are two proofs, and either is enough: a report of the system, and a Node of its cluster on this server whose
kubelet reports. Where there is neither in time the bootstrap counts as failed, so that a health check replaces the
machine; but not while nobody can tell, because the cluster does not answer.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from ironbell.api.capt.names import ANNOTATION_PROVISIONED
from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.contract.clusters.bootstrap import BOOTSTRAP_SUCCEEDED
from ironbell.contract.clusters.machine_causes import BOOTSTRAP_FAILED
from ironbell.kube.decision import Action, patch
from ironbell.provisioner.health import INSTALL_FAILED
from ironbell.provisioner.installed_system import (
    SystemFailure,
    has_reported,
    hides_failure,
    installation_ended,
    moment,
    reported_failure,
)
from ironbell.provisioner.lifecycle.host import READY, Draft, Step
from ironbell.provisioner.lifecycle.names import (
    DEFAULT_REPORT_TIMEOUT_S,
    INSTALL_BEGUN,
    INSTALLED,
    REPORT_TIMEOUT,
    State,
)
from ironbell.provisioner.lifecycle.nodes import NOTICED, InstalledNode, installed_node

NO_REPORT: Final = "NoReport"
_DOUBTFUL: Final = (
    "The system reports success whether kubeadm has succeeded or not, because postKubeadmCommands follow it."
)
BOOTSTRAP_TAKES: Final = timedelta(hours=2)
"""At most, from the end of the installation; what the system of a Node reports after that is of a later boot."""
OUTPUT_S: Final = 15.0
"""How long a failed system has for sending its output: who remediates the machine switches it off."""


def boots(draft: Draft, workflow: Workflow, hardware: Hardware) -> Step:
    """The next step for a machine whose Workflow has succeeded."""
    ended = installation_ended(workflow)
    failure = reported_failure(hardware, ended)
    if failure is not None:
        return failed(draft, hardware, failure)
    found = installed_node(hardware, draft.state.new_nodes, ended, draft.now)
    reported = has_reported(hardware, ended)
    doubtful = hides_failure(hardware.spec.user_data or "")
    if reported and not doubtful:
        return installed(draft, hardware, "The installed system reported that it is up.")
    if found.node is not None:
        return installed(draft, hardware, f"Node {found.node.name} runs on the server, and its kubelet reports.")
    patience_s = draft.owner.number(REPORT_TIMEOUT, DEFAULT_REPORT_TIMEOUT_S)
    if patience_s == 0:
        return installed(draft, hardware, f"The installed system is not waited for: {REPORT_TIMEOUT} is 0.")
    waited_s = _waited_s(ended, draft.now, patience_s)
    if waited_s >= patience_s:
        return _is_silent(draft, hardware, found, patience_s, reported=reported)
    draft.phase = State.BOOTING
    waits_for = "its Node" if doubtful else "the operating system's first report or its Node"
    message = f"Installed. Waiting for {waits_for} (times out after {patience_s} s)."
    if doubtful and reported:
        message += f" {_DOUBTFUL}"
    draft.note(INSTALLED, False, "Booting", message)
    left = [limit_s - waited_s for limit_s in (patience_s, NOTICED.total_seconds()) if limit_s > waited_s]
    return draft.waits("Booting", message, after_s=min(left), needs=found.needs)


def failed(draft: Draft, hardware: Hardware, failure: SystemFailure) -> Step:
    """The installed system reported that its bootstrap failed."""
    draft.phase = State.FAILED
    message = f"Server {hardware.metadata.name}: {failure.text()}"
    at = moment(failure.at)
    left_s = OUTPUT_S - (draft.now - at).total_seconds() if at is not None and not failure.output else 0.0
    if left_s > 0 and not _was_noted(draft):
        return draft.waits(BOOTSTRAP_FAILED, f"{message} It may still come.", after_s=left_s)
    draft.note(BOOTSTRAP_SUCCEEDED, False, BOOTSTRAP_FAILED, message)
    if not draft.owner.status.is_ready:
        draft.note(INSTALLED, False, BOOTSTRAP_FAILED, message)
    news = None if _was_noted(draft) else _event(draft, message)
    return draft.waits(BOOTSTRAP_FAILED, message, news)


def failure_of(draft: Draft, hardware: Hardware) -> SystemFailure | None:
    """What the present system of a machine that is ready reported of its bootstrap: a Node may be there before kubeadm
    has ended. What fails at a later boot of a Node is no matter of its bootstrap."""
    workflow, node = draft.state.workflow, draft.wish.node
    begun = moment(draft.owner.annotations.get(INSTALL_BEGUN, ""))
    ended = installation_ended(workflow) if workflow is not None else begun
    failure = reported_failure(hardware, ended)
    at = moment(failure.at) if failure is not None else None
    has_node = node is not None and bool(node.name)
    is_later = at is not None and ended is not None and at - ended > BOOTSTRAP_TAKES
    return None if has_node and is_later else failure


def installed(draft: Draft, hardware: Hardware, how: str) -> Step:
    """The system is up: record it on the Hardware, and be ready."""
    # Until the server says so a crash would only bring us here again.
    annotations = {ANNOTATION_PROVISIONED: "true", INSTALL_FAILED: None}
    mark = patch(HARDWARE, hardware, {"metadata": {"annotations": annotations}}, locked=True)
    return is_up(draft, mark, draft.owner.event("Installed", how))


def is_up(draft: Draft, *actions: Action) -> Step:
    """Be ready."""
    draft.phase = State.RUNNING
    draft.is_provisioned = True
    draft.note(INSTALLED, True, "Installed")
    if draft.known(BOOTSTRAP_SUCCEEDED) is not None:
        draft.note(BOOTSTRAP_SUCCEEDED, True, "Succeeded")
    draft.note(READY, True, "Ready")
    return draft.goes_on(*actions)


def _is_silent(draft: Draft, hardware: Hardware, found: InstalledNode, patience_s: int, *, reported: bool) -> Step:
    """There was no report in time that proves anything, and there is no Node that anybody can see."""
    server = f"Server {hardware.metadata.name} was installed"
    silent = f"{server}, but its operating system did not report within {patience_s} s"
    if reported:
        silent = f"{server} and reported that it is up. {_DOUBTFUL} {patience_s} s have passed"
    node = draft.wish.node
    if node is not None and not node.is_first and not found.is_absent:
        draft.phase = State.BOOTING
        why = f" ({found.problem})" if found.problem else ""
        message = f"{silent}, and its cluster cannot be asked for its Node{why}."
        draft.note(INSTALLED, None, NO_REPORT, message)
        return draft.waits(NO_REPORT, message, needs=found.needs)
    message = (
        f"{silent}, and its cluster has no Node of it. Look at the server's console; "
        f"delete the {draft.owner.of.noun} to try again, or raise the annotation {REPORT_TIMEOUT}."
    )
    draft.phase = State.FAILED
    draft.note(INSTALLED, False, NO_REPORT, message)
    draft.note(BOOTSTRAP_SUCCEEDED, False, NO_REPORT, message)
    news = None if _was_noted(draft) else _event(draft, message)
    return draft.waits(NO_REPORT, message, news, needs=found.needs)


def _was_noted(draft: Draft) -> bool:
    found = draft.known(BOOTSTRAP_SUCCEEDED)
    return found is not None and found.status == "False"


def _event(draft: Draft, message: str) -> Action:
    return draft.owner.event(BOOTSTRAP_FAILED, message, warning=True)


def _waited_s(ended: datetime | None, now: datetime, patience_s: int) -> float:
    return (now - ended).total_seconds() if ended is not None else float(patience_s)
