"""The stage between a claimed server and a system that runs on it: user data, Template, Workflow, report. Pure.

Order: user data is on the Hardware before anything boots, and the metadata service serves it once the Workflow is at
its last action (`provisioner.user_data`); the Template precedes the Workflow. A failed installation is retried as often
as its annotation allows, each time with a new Workflow; the previous one remains in the Hardware's history.

An owner keeps its server for life, and its bootstrap data may be used up. If installations keep failing on a server,
the owner is replaced; the new owner claims another server, because this one then ranks behind all others. If
installations for the same object have failed on several servers, the servers are hardly the cause, and the owner fails
on this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from ironbell.api.core.secret import SecretMetadata
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import rfc3339, rfc3339_micro
from ironbell.contract.clusters.machine_causes import INSTALLATION_FAILED
from ironbell.contract.servers.boot_progress import PROGRESS
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_UP
from ironbell.kube.decision import Effect, Key, MergePatch, create, delete, patch
from ironbell.provisioner.disks import has_started, kept_disks, unknown_kept_disks
from ironbell.provisioner.health import INSTALL_FAILED, InstallFailures, Severity, install_failures, is_silent, silence
from ironbell.provisioner.installed_system import moment
from ironbell.provisioner.lifecycle import booting
from ironbell.provisioner.lifecycle.created import FAILED, UnusableError, boot_options, workflow_failure, workflow_spec
from ironbell.provisioner.lifecycle.host import Draft, Step
from ironbell.provisioner.lifecycle.names import (
    DEFAULT_ATTEMPTS,
    INSTALL_ATTEMPT,
    INSTALL_ATTEMPTS,
    INSTALL_BEGUN,
    INSTALLED,
    MOVE_AFTER,
    SERVERS_PER_OWNER,
    State,
    provider_id,
)
from ironbell.provisioner.lifecycle.selection import pick, verdict
from ironbell.provisioner.lifecycle.waves import RECHECK_S
from ironbell.provisioner.lifecycle.wiping import invalid_wipe_policy, wipe_policy
from ironbell.provisioner.node_images import MissingImage
from ironbell.provisioner.user_data import is_at_last_action, is_provisioned, needs_user_data

GIVE_USER_DATA: Final = "give-user-data"
_MESSAGE_LIMIT: Final = 400


@dataclass(frozen=True, slots=True)
class GiveUserData:
    """Copy the bootstrap data of a Secret to a Hardware, if neither has changed since it was observed."""

    secret: Key
    hardware: Key
    resource_version: str
    provider_id: str
    marked_as: str


class ImagePendingError(Exception):
    """The default image cannot be installed yet."""

    def __init__(self, missing: MissingImage) -> None:
        super().__init__(missing.message)
        self.missing = missing


def install(draft: Draft, hardware: Hardware) -> Step:
    """Return the next step for an owner that has this server and is not ready yet."""
    if is_provisioned(hardware):
        return booting.becomes_ready(draft)
    fill = user_data(draft.wish.bootstrap, hardware)
    if fill is not None:
        draft.phase = State.INSTALLING
        message = "Providing the bootstrap data to the metadata service."
        draft.set_condition(INSTALLED, False, "GivingUserData", message)
        return draft.waits("GivingUserData", message, fill)
    workflow = draft.state.workflow
    if workflow is None:
        return _begin(draft, hardware)
    if not draft.owner.owns(workflow):
        where = f"Workflow {workflow.metadata.namespace}/{workflow.metadata.name}"
        return draft.waits("ForeignWorkflow", f"{where} exists and belongs to another owner. Delete it.")
    if workflow.metadata.deletion_timestamp is not None:
        message = f"Workflow {workflow.metadata.name} of an earlier attempt is being deleted."
        return draft.waits("WaitingForOldWorkflow", message)
    if workflow.status.state in FAILED:
        if _has_come_up(workflow, hardware):
            proof = "The installed system reported that it is up, although the last action did not report its result."
            return booting.installed(draft, hardware, proof)
        return _failed(draft, hardware, workflow)
    if workflow.status.state == WorkflowState.SUCCESS:
        return booting.boots(draft, workflow, hardware)
    if hardware.spec.bmc_ref is None and not has_started(workflow):
        return _by_hand(draft, hardware)
    draft.phase = State.INSTALLING
    bmc = draft.state.bmc
    if bmc is not None and is_silent(bmc) and not has_started(workflow):
        # Only its BMC boots the server.
        message = f"The BMC of Hardware {'/'.join(hardware.key)} cannot be used: {silence(bmc)}"
        draft.set_condition(INSTALLED, False, "BMCNotContactable", message)
        return draft.waits("BMCNotContactable", message)
    message = progress_of(workflow)
    draft.set_condition(INSTALLED, False, "Installing", message)
    return draft.waits("Installing", message)


def _by_hand(draft: Draft, hardware: Hardware) -> Step:
    """Wait until a user boots a server without BMC."""
    where = "/".join(hardware.key)
    message = f"Hardware {where} has no BMC: power the server on, or restart it, and boot it over the network."
    draft.phase = State.WAITING
    draft.set_condition(INSTALLED, False, "WaitingForManualAction", message)
    return draft.waits("WaitingForManualAction", message)


def user_data(secret: SecretMetadata | None, hardware: Hardware) -> Effect | None:
    """Return the effect that provides the bootstrap data, unless the Hardware has the Secret's current version."""
    if secret is None:
        return None
    version = f"{secret.metadata.namespace}/{secret.metadata.name} {secret.metadata.resource_version}"
    if not needs_user_data(hardware, version):
        return None
    return Effect(
        GIVE_USER_DATA,
        GiveUserData(secret.key, hardware.key, hardware.metadata.resource_version, provider_id(hardware), version),
    )


def progress_of(workflow: Workflow) -> str:
    """The progress of an installation: action n of m, with its name."""
    actions = [action for task in workflow.status.tasks for action in task.actions]
    current = workflow.status.current_state
    if not actions or current is None or not current.action_name:
        messages = (condition.message for condition in workflow.status.conditions if condition.type == "Succeeded")
        message = next(messages, "")
        return f"workflow is {workflow.status.state or 'new'}" + (f": {message}" if message else "")
    percent = _percent(workflow.metadata.annotations.get(PROGRESS, ""), current.action_id)
    place = next((number for number, action in enumerate(actions, 1) if action.id == current.action_id), 1)
    return f"action {place} of {len(actions)}: {current.action_name}{percent}"


class _Progress(msgspec.Struct, frozen=True):
    action_id: str = msgspec.field(default="", name="actionID")
    percent: float | None = None


def _percent(text: str, action_id: str) -> str:
    """The progress of an action as its agent reports it, in tenths, so that not every percent is a write."""
    try:
        progress = msgspec.json.decode(text, type=_Progress) if text else _Progress()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    if progress.percent is None or progress.action_id != action_id:
        return ""
    return f", {int(progress.percent) // 10 * 10} %"


def _begin(draft: Draft, hardware: Hardware) -> Step:
    owner, state = draft.owner, draft.state
    try:
        if wipe_policy(owner.obj, hardware) is None:
            raise UnusableError("InvalidWipePolicy", invalid_wipe_policy(owner.obj, hardware))
        if problem := unknown_kept_disks(hardware, kept_disks(owner.obj, hardware)):
            raise UnusableError("KeepDisksUnknown", problem)
        boot = boot_options(draft.wish.boot, hardware)
        if draft.wish.template is None:
            raise UnusableError("TemplateNotFound", "No Template installs the server.")
        template = draft.wish.template(owner.metadata(hardware, owner.name), boot)
    except ImagePendingError as error:
        return _without_image(draft, error.missing)
    except UnusableError as error:
        draft.phase = State.FAILED
        return draft.waits(error.reason, str(error))
    tried = owner.number(INSTALL_ATTEMPT, 0)
    if tried == 0 and (message := state.wave.waits(draft.wish.installs_per_rack, draft.now)):
        draft.phase = State.WAITING
        draft.set_condition(INSTALLED, False, "WaitingForTurn", message)
        return draft.waits("WaitingForTurn", message, after_s=RECHECK_S)
    if state.template is not None and state.template.metadata.deletion_timestamp is not None:
        message = f"Template {owner.name} of an earlier attempt is being deleted."
        return draft.waits("WaitingForOldTemplate", message)
    begun = {INSTALL_BEGUN: rfc3339_micro(draft.now)}
    metadata = owner.workflow_metadata(hardware, owner.name, begun)
    # The creation of the Workflow wakes the owner, which then reports its progress.
    return draft.writes(
        owner.mark({INSTALL_ATTEMPT: "1", **begun}) if tried == 0 else None,
        create(TEMPLATE, template) if state.template is None else None,
        create(WORKFLOW, {"metadata": metadata, "spec": workflow_spec(hardware, owner.name, boot)}),
        owner.event("Installing", f"Installing server {hardware.metadata.name}."),
    )


def _without_image(draft: Draft, missing: MissingImage) -> Step:
    """Wait until the site has an image; the server is unchanged until then."""
    if not missing.reason:
        return draft.proceeds(needs=missing.needs)
    draft.phase = State.WAITING
    draft.set_condition(INSTALLED, False, missing.reason, missing.message)
    return draft.waits(missing.reason, missing.message, needs=missing.needs)


def _has_come_up(workflow: Workflow, hardware: Hardware) -> bool:
    """Return whether the installed system runs although its Workflow has failed: the last action leaves the in-memory
    OS, and its report may be lost. A retry would wipe a node."""
    if not is_at_last_action(workflow):
        return False
    begun = moment(workflow.status.tasks[-1].actions[-1].execution_start or "")
    reported = moment(hardware.metadata.annotations.get(INSTALLED_SYSTEM_UP, ""))
    return begun is not None and reported is not None and reported >= begun


def _failed(draft: Draft, hardware: Hardware, workflow: Workflow) -> Step:
    owner, state = draft.owner, draft.state
    tried, most = max(owner.number(INSTALL_ATTEMPT, 0), 1), max(owner.number(INSTALL_ATTEMPTS, DEFAULT_ATTEMPTS), 1)
    cause = workflow_failure(workflow)
    if tried >= MOVE_AFTER and (moved := _move(draft, hardware, tried, cause)) is not None:
        return moved
    if tried >= most:
        draft.phase = State.FAILED
        message = f"The installation failed {tried} of {most} times: {cause}. "
        message += f"Delete the {owner.of.noun}, or raise annotation {INSTALL_ATTEMPTS}."
        draft.set_condition(INSTALLED, False, INSTALLATION_FAILED, message)
        event = owner.event(INSTALLATION_FAILED, message, warning=True)
        return draft.waits(INSTALLATION_FAILED, message, _mark_server(draft, hardware, tried, cause), event)
    message = f"Attempt {tried} of {most} failed and is retried: {cause}."
    draft.set_condition(INSTALLED, False, "Retrying", message)
    return draft.waits(
        "Retrying",
        message,
        # the Workflow is deleted first: after a crash in between, no attempt is counted that was not made
        delete(WORKFLOW, workflow),
        delete(TEMPLATE, state.template) if state.template is not None else None,
        owner.mark({INSTALL_ATTEMPT: str(tried + 1)}),
        owner.event("InstallationRetried", message, warning=True),
    )


def _move(draft: Draft, hardware: Hardware, tried: int, cause: str) -> Step | None:
    """Request the replacement of the owner, if another server fits; None if the installation is retried here."""
    wish, noun = draft.wish, draft.owner.of.noun
    if not wish.replaced_by:
        return None
    failed = f"Installation failed {tried} times on Hardware {'/'.join(hardware.key)}: {cause}."
    if wish.replacement is not None:
        answer = f" The owner of the {noun} reports: {wish.replacement}" if wish.replacement else ""
        return _moves(draft, f"{failed} The {noun} is being replaced, to be installed on another server.{answer}")
    other = _other(draft)
    if other is None:
        return None
    message = f"{failed} The {noun} is being replaced, because Hardware {'/'.join(other.key)} fits as well."
    return _moves(draft, message, _mark_server(draft, hardware, tried, cause), replace_because=failed)


def _moves(draft: Draft, message: str, *actions: MergePatch | None, replace_because: str = "") -> Step:
    draft.phase = State.FAILED
    draft.set_condition(INSTALLED, False, "Replacing", message)
    return draft.waits("Replacing", message, *actions, replace_because=replace_because)


def _other(draft: Draft) -> Hardware | None:
    """A server without concerns that fits, if another server may help."""
    wished, state = draft.wish.servers, draft.state
    if len(state.failed_servers) + 1 >= SERVERS_PER_OWNER or draft.wish.servers_problem:
        return None
    server = pick(wished, state.servers, 0, state.silent_bmcs)
    is_doubtful = server is not None and verdict(wished, server, state.silent_bmcs).severity is not Severity.NONE
    return None if is_doubtful else server


def _mark_server(draft: Draft, hardware: Hardware, times: int, cause: str) -> MergePatch | None:
    """Record on the Hardware, once, that installations failed on it, so that other servers are claimed before it."""
    owner, known = draft.owner, install_failures(hardware)
    if known is not None and (known.uid, known.times) == (owner.uid, times):
        return None
    failures = InstallFailures(
        machine=owner.path,
        uid=owner.uid,
        owner=draft.wish.replaced_by,
        times=times,
        at=rfc3339(draft.now),
        message=cause[:_MESSAGE_LIMIT],
    )
    text = msgspec.json.encode(failures).decode()
    return patch(HARDWARE, hardware, {"metadata": {"annotations": {INSTALL_FAILED: text}}}, locked=True)
