"""The stage between the last action of an installation and a ready machine: its system must prove that it is up. Pure.

Either of two proofs is enough: a report of the system, or a Node of its cluster on this server whose kubelet reports.
If there is neither in time, the bootstrap has failed, so that a health check replaces the machine; but not while that
is unknown because the cluster does not respond.
"""

from __future__ import annotations

from datetime import timedelta
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
    installation_end,
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
BOOTSTRAP_LIMIT: Final = timedelta(hours=2)
"""Maximum time from the installation to the end of the bootstrap; later reports of a Node's system are of a later
boot."""
OUTPUT_S: Final = 15.0
"""Time in which a failed system can send its output, before remediation powers it off."""


def boots(draft: Draft, workflow: Workflow, hardware: Hardware) -> Step:
    """The next step for a machine whose Workflow has succeeded."""
    end_time = installation_end(workflow)
    if (failure := reported_failure(hardware, end_time)) is not None:
        return failed(draft, hardware, failure)
    proof = installed_node(hardware, draft.state.new_nodes, end_time, draft.now)
    reported = has_reported(hardware, end_time)
    doubtful = hides_failure(hardware.spec.user_data or "")
    if reported and not doubtful:
        return installed(draft, hardware, "The installed system reported that it is up.")
    if proof.node is not None:
        return installed(draft, hardware, f"Node {proof.node.name} runs on the server, and its kubelet reports.")
    patience_s = draft.owner.number(REPORT_TIMEOUT, DEFAULT_REPORT_TIMEOUT_S)
    if patience_s == 0:
        return installed(draft, hardware, f"Not waiting for the installed system: {REPORT_TIMEOUT} is 0.")
    waited_s = (draft.now - end_time).total_seconds() if end_time is not None else float(patience_s)
    if waited_s >= patience_s:
        return _without_proof(draft, hardware, proof, patience_s, reported=reported)
    draft.phase = State.BOOTING
    waits_for = "its Node" if doubtful else "the operating system's first report or its Node"
    message = f"Installed. Waiting for {waits_for} (times out after {patience_s} s)."
    if doubtful and reported:
        message += f" {_DOUBTFUL}"
    draft.set_condition(INSTALLED, False, "Booting", message)
    left = [limit_s - waited_s for limit_s in (patience_s, NOTICED.total_seconds()) if limit_s > waited_s]
    return draft.waits("Booting", message, after_s=min(left), needs=proof.needs)


def failed(draft: Draft, hardware: Hardware, failure: SystemFailure) -> Step:
    """Report the failure of the bootstrap, as the installed system reported it."""
    draft.phase = State.FAILED
    message = f"Server {hardware.metadata.name}: {failure.text()}"
    at = moment(failure.at)
    left_s = OUTPUT_S - (draft.now - at).total_seconds() if at is not None and not failure.output else 0.0
    if left_s > 0 and not _was_reported(draft):
        return draft.waits(BOOTSTRAP_FAILED, f"{message} Waiting for its output.", after_s=left_s)
    draft.set_condition(BOOTSTRAP_SUCCEEDED, False, BOOTSTRAP_FAILED, message)
    if not draft.owner.status.is_ready:
        draft.set_condition(INSTALLED, False, BOOTSTRAP_FAILED, message)
    return draft.waits(BOOTSTRAP_FAILED, message, _event(draft, message))


def failure_of(draft: Draft, hardware: Hardware) -> SystemFailure | None:
    """The failure that the current system of a ready machine reported of its bootstrap, or None. A Node may exist
    before kubeadm has completed; failures at later boots of a Node do not concern its bootstrap."""
    workflow, node = draft.state.workflow, draft.wish.node
    begun = moment(draft.owner.annotations.get(INSTALL_BEGUN, ""))
    end_time = installation_end(workflow) if workflow is not None else begun
    failure = reported_failure(hardware, end_time)
    at = moment(failure.at) if failure is not None else None
    has_node = node is not None and bool(node.name)
    is_later = at is not None and end_time is not None and at - end_time > BOOTSTRAP_LIMIT
    return None if has_node and is_later else failure


def installed(draft: Draft, hardware: Hardware, proof: str) -> Step:
    """Record on the Hardware that the system is up, and become ready."""
    # After a crash before this write, the next reconciliation decides the same.
    annotations = {ANNOTATION_PROVISIONED: "true", INSTALL_FAILED: None}
    mark = patch(HARDWARE, hardware, {"metadata": {"annotations": annotations}}, locked=True)
    return becomes_ready(draft, mark, draft.owner.event("Installed", proof))


def becomes_ready(draft: Draft, *actions: Action) -> Step:
    """Return the step with which the owner becomes ready."""
    draft.phase = State.RUNNING
    draft.is_provisioned = True
    draft.set_condition(INSTALLED, True, "Installed")
    if draft.known(BOOTSTRAP_SUCCEEDED) is not None:
        draft.set_condition(BOOTSTRAP_SUCCEEDED, True, "Succeeded")
    draft.set_condition(READY, True, "Ready")
    return draft.proceeds(*actions)


def _without_proof(draft: Draft, hardware: Hardware, proof: InstalledNode, patience_s: int, *, reported: bool) -> Step:
    """Report that the system has given no proof in time."""
    server = f"Server {hardware.metadata.name} was installed"
    silent = f"{server}, but its operating system did not report within {patience_s} s"
    if reported:
        silent = f"{server} and reported that it is up. {_DOUBTFUL} {patience_s} s have passed"
    node = draft.wish.node
    if node is not None and not node.is_first and not proof.is_absent:
        draft.phase = State.BOOTING
        problem = f" ({proof.problem})" if proof.problem else ""
        message = f"{silent}, and its cluster cannot be queried for its Node{problem}."
        draft.set_condition(INSTALLED, None, NO_REPORT, message)
        return draft.waits(NO_REPORT, message, needs=proof.needs)
    message = (
        f"{silent}, and its cluster has no Node for it. Check the server's console. "
        f"Delete the {draft.owner.of.noun} to try again, or raise annotation {REPORT_TIMEOUT}."
    )
    draft.phase = State.FAILED
    draft.set_condition(INSTALLED, False, NO_REPORT, message)
    draft.set_condition(BOOTSTRAP_SUCCEEDED, False, NO_REPORT, message)
    return draft.waits(NO_REPORT, message, _event(draft, message), needs=proof.needs)


def _was_reported(draft: Draft) -> bool:
    condition = draft.known(BOOTSTRAP_SUCCEEDED)
    return condition is not None and condition.status == "False"


def _event(draft: Draft, message: str) -> Action | None:
    """The event of a failure that was not reported yet."""
    return None if _was_reported(draft) else draft.owner.event(BOOTSTRAP_FAILED, message, warning=True)
