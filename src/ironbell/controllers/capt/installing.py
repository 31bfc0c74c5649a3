"""From a server that was taken to a system that runs on it: user data, Template, Workflow, report. Pure.

Order: user data is on the Hardware before anything boots, and told by the metadata service once the Workflow is at its
last action (`contract.installation`); the Template before the Workflow. An installation that fails is tried again as
often as its annotation allows, each time with a new Workflow; the former one's story stays in the Hardware's history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import msgspec

from ironbell.api.bmc.machine import Machine as BmcMachine
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.names import (
    ANNOTATION_PROVISIONED,
    ANNOTATION_TEMPLATE_OVERRIDE,
)
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.tinkerbell import TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import rfc3339_micro
from ironbell.codec.gotemplate import TemplateError
from ironbell.contract.boot_token import without_token
from ironbell.contract.capabilities import capabilities
from ironbell.contract.directory import KEEP_DISKS, agent_id
from ironbell.contract.hardware_claim import INSTALLED_SYSTEM_UP
from ironbell.contract.identity import IDENTITY
from ironbell.contract.installation import is_at_last_action
from ironbell.contract.machine_failure import INSTALLATION_FAILED
from ironbell.contract.node_images import NO_IMAGES, ImageSource
from ironbell.contract.racks import INSTALLS_PER_RACK
from ironbell.controllers.capt import booting
from ironbell.controllers.capt.imageurl import image_url, names_image
from ironbell.controllers.capt.made import (
    FAILED,
    UnusableError,
    boot_options,
    is_ours,
    marked_as,
    marked_as_ours,
    metadata,
    why_failed,
    workflow_metadata,
)
from ironbell.controllers.capt.moving import mark_server, move
from ironbell.controllers.capt.observed import Observed, override_key
from ironbell.controllers.capt.progress import Progress
from ironbell.controllers.capt.wiping import invalid_wipe_policy, wipe_policy
from ironbell.kube.decision import Decision, Effect, Key, create, delete, do, emit, patch
from ironbell.provisioner.default_template import Inputs, default_template
from ironbell.provisioner.evidence import has_started
from ironbell.provisioner.health import is_silent, silence
from ironbell.provisioner.installed_system import moment
from ironbell.provisioner.keeping import install_disk, kept_disks, unknown_kept_disks
from ironbell.provisioner.lifecycle.names import (
    DEFAULT_ATTEMPTS,
    INSTALL_ATTEMPT,
    INSTALL_ATTEMPTS,
    INSTALL_BEGUN,
    INSTALLED,
    MOVE_AFTER,
    PROGRESS,
    State,
    number,
    provider_id,
)
from ironbell.provisioner.node_images import FoundImage, MissingImage, default_image
from ironbell.provisioner.user_data import needs_user_data

GIVE_USER_DATA: Final = "give-user-data"
LOOK_AGAIN_S: Final = 300.0
"""How often a machine looks whether it is its turn although nobody woke it."""


@dataclass(frozen=True, slots=True)
class GiveUserData:
    """Put a Secret's bootstrap data onto a Hardware, if both are still as they were seen."""

    secret: Key
    hardware: Key
    resource_version: str
    provider_id: str
    marked_as: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What the site's administrator has set for installations."""

    site: str
    """Where machines reach the metadata service, such as `http://192.0.2.1:7080`; empty if that is not known."""
    at_once: int = INSTALLS_PER_RACK
    """How many servers of a rack are installed at the same time; 0 is no bound."""
    images: ImageSource = NO_IMAGES


class ImagePendingError(Exception):
    """The default image cannot be installed yet."""

    def __init__(self, missing: MissingImage) -> None:
        super().__init__(missing.message)
        self.missing = missing


def install(
    progress: Progress, observed: Observed, machine: Machine, hardware: Hardware, settings: Settings
) -> Decision:
    """The next step for a machine that has this server and is not ready yet."""
    obj = observed.obj
    if hardware.metadata.annotations.get(ANNOTATION_PROVISIONED) == "true":
        return booting.is_up(progress)
    fill = user_data(observed, hardware)
    if fill is not None:
        progress.state = State.INSTALLING
        progress.note(INSTALLED, False, "GivingUserData", "bootstrap data is being given to the metadata service")
        return progress.waits("GivingUserData", "bootstrap data is being given to the metadata service", fill)
    workflow = observed.workflow
    if workflow is None:
        return _begin(progress, observed, machine, hardware, settings)
    if not is_ours(workflow, obj):
        where = f"Workflow {workflow.metadata.namespace}/{workflow.metadata.name}"
        return progress.waits("ForeignWorkflow", f"{where} exists and is not this machine's; delete it")
    if workflow.metadata.deletion_timestamp is not None:
        return progress.waits("WaitingForOldWorkflow", f"Workflow {workflow.metadata.name} of an earlier attempt goes")
    if workflow.status.state in FAILED:
        if _has_come_up(workflow, hardware):
            how = "the installed system has reported that it is up, though the last action did not tell how it ended"
            return booting.installed(progress, hardware, how)
        return _failed(progress, observed, workflow)
    if workflow.status.state == WorkflowState.SUCCESS:
        return booting.boots(progress, observed, workflow, hardware)
    if hardware.spec.bmc_ref is None and not has_started(workflow):
        return _by_hand(progress, hardware)
    progress.state = State.INSTALLING
    if observed.bmc is not None and is_silent(observed.bmc) and not has_started(workflow):
        return _without_bmc(progress, hardware, observed.bmc)
    message = how_far(workflow)
    progress.note(INSTALLED, False, "Installing", message)
    return progress.waits("Installing", message)


def _by_hand(progress: Progress, hardware: Hardware) -> Decision:
    """Nobody but a person can boot a server without BMC."""
    where = "/".join(hardware.key)
    message = f"Hardware {where} has no BMC: power the server on, or restart it, and boot it over the network."
    progress.state = State.WAITING
    progress.note(INSTALLED, False, "WaitingForManualAction", message)
    return progress.waits("WaitingForManualAction", message)


def _without_bmc(progress: Progress, hardware: Hardware, bmc: BmcMachine) -> Decision:
    """Only its BMC boots the server, and that does not answer."""
    where = "/".join(hardware.key)
    message = f"the BMC of Hardware {where} cannot be used: {silence(bmc)}"
    progress.note(INSTALLED, False, "BMCNotContactable", message)
    return progress.waits("BMCNotContactable", message)


def user_data(observed: Observed, hardware: Hardware) -> Effect | None:
    """What gives the bootstrap data, unless the Hardware has the Secret's present version."""
    secret = observed.secret
    if secret is None:
        return None
    version = f"{secret.metadata.namespace}/{secret.metadata.name} {secret.metadata.resource_version}"
    if not needs_user_data(hardware, version):
        return None
    return Effect(
        GIVE_USER_DATA,
        GiveUserData(secret.key, hardware.key, hardware.metadata.resource_version, provider_id(hardware), version),
    )


def _begun(workflow: Workflow) -> str:
    said = next((one.message for one in workflow.status.conditions if one.type == "Succeeded"), "")
    return f"workflow is {workflow.status.state or 'new'}" + (f": {said}" if said else "")


def how_far(workflow: Workflow) -> str:
    """Action n of m, with its name."""
    actions = [action for task in workflow.status.tasks for action in task.actions]
    current = workflow.status.current_state
    if not actions or current is None or not current.action_name:
        return _begun(workflow)
    share = _percent(workflow.metadata.annotations.get(PROGRESS, ""), current.action_id)
    place = next((number for number, action in enumerate(actions, 1) if action.id == current.action_id), 1)
    return f"action {place} of {len(actions)}: {current.action_name}{share}"


class _Share(msgspec.Struct, frozen=True):
    action_id: str = msgspec.field(default="", name="actionID")
    percent: float | None = None


def _percent(text: str, action_id: str) -> str:
    """How far the agent says that the action is, in tenths, so that not every percent is a write."""
    try:
        share = msgspec.json.decode(text, type=_Share) if text else _Share()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    if share.percent is None or share.action_id != action_id:
        return ""
    return f", {int(share.percent) // 10 * 10} %"


def _begin(
    progress: Progress, observed: Observed, machine: Machine, hardware: Hardware, settings: Settings
) -> Decision:
    obj = observed.obj
    try:
        if wipe_policy(obj, hardware) is None:
            raise UnusableError("InvalidWipePolicy", invalid_wipe_policy(obj, hardware))
        if wrong := unknown_kept_disks(hardware, kept_disks(obj, hardware)):
            raise UnusableError("KeepDisksUnknown", wrong)
        boot = boot_options(obj, hardware)
        template = template_for(observed, machine, hardware, settings, boot, progress.now)
    except ImagePendingError as error:
        return _without_image(progress, error.missing)
    except UnusableError as error:
        progress.state = State.FAILED
        return progress.waits(error.reason, str(error))
    tried = number(obj, INSTALL_ATTEMPT, 0)
    turn = observed.wave.waits(settings.at_once, progress.now) if tried == 0 else ""
    if turn:
        progress.state = State.WAITING
        progress.note(INSTALLED, False, "WaitingForTurn", turn)
        return progress.waits("WaitingForTurn", turn, after_s=LOOK_AGAIN_S)
    if observed.template is not None and observed.template.metadata.deletion_timestamp is not None:
        return progress.waits("WaitingForOldTemplate", f"Template {obj.metadata.name} of an earlier attempt goes")
    begun = {INSTALL_BEGUN: rfc3339_micro(progress.now)}
    of_workflow = workflow_metadata(obj, hardware, obj.metadata.name)
    of_workflow["annotations"] = {**of_workflow.get("annotations", {}), **begun}
    mark = {"metadata": {"annotations": {INSTALL_ATTEMPT: "1", **begun}}}
    spec: dict[str, Any] = {
        "templateRef": obj.metadata.name,
        "hardwareRef": hardware.metadata.name,
        "hardwareMap": {"device_1": agent_id(hardware)},
        "bootOptions": boot,
    }
    # The Workflow's coming brings it back: then there is something to tell.
    return do(
        patch(TINKERBELL_MACHINE, obj, mark, locked=True) if tried == 0 else None,
        create(TEMPLATE, template) if observed.template is None else None,
        create(WORKFLOW, {"metadata": of_workflow, "spec": spec}),
        emit(TINKERBELL_MACHINE, obj, reason="Installing", message=f"{hardware.metadata.name} is being installed"),
    )


def _without_image(progress: Progress, missing: MissingImage) -> Decision:
    """Wait until the site has an image; nothing was done to the server yet."""
    if not missing.reason:
        return replace(progress.goes_on(), needs=missing.needs)
    progress.state = State.WAITING
    progress.note(INSTALLED, False, missing.reason, missing.message)
    return replace(progress.waits(missing.reason, missing.message), needs=missing.needs)


def template_for(
    observed: Observed,
    machine: Machine,
    hardware: Hardware,
    settings: Settings,
    boot: Mapping[str, Any],
    now: datetime,
) -> dict[str, Any]:
    """The Template: the machine's own, the Hardware's, the cluster's, or the default. `boot` is how the server boots.

    Raises:
        UnusableError: the Template that is meant is missing or empty, or the image cannot be named.
        ImagePendingError: the image is the default one, and the site does not have it.
    """
    obj, infrastructure = observed.obj, observed.infrastructure or TinkerbellCluster()
    made = metadata(obj, hardware, obj.metadata.name)
    if obj.spec.template_override:
        return _with_text(made, obj.spec.template_override)
    reference = override_key(hardware, infrastructure)
    by_annotation = ANNOTATION_TEMPLATE_OVERRIDE in hardware.metadata.annotations
    if infrastructure.spec.template_override and not by_annotation:
        return _with_text(made, infrastructure.spec.template_override)
    if reference is not None:
        where = f"Template {reference[0]}/{reference[1]}"
        meant = "annotation of the Hardware" if by_annotation else "TinkerbellCluster's spec.templateOverrideRef"
        if observed.override is None:
            raise UnusableError("TemplateNotFound", f"{where}, that the {meant} names, does not exist")
        if not observed.override.spec.data:
            raise UnusableError("TemplateEmpty", f"{where}, that the {meant} names, has no spec.data")
        return _with_text(marked_as(made, observed.override), observed.override.spec.data)
    if not settings.site:
        message = "the default template needs the metadata service's address: start Ironbell with --metadata-url"
        raise UnusableError("MetadataURLUnknown", f"{message}, or give a template of your own")
    image = _image(observed, machine, hardware, settings, now)
    disk = install_disk(hardware, kept_disks(obj, hardware))
    if not disk:
        raise UnusableError("DisksKept", f"annotation {KEEP_DISKS} keeps every disk of {hardware.metadata.name}")
    site = without_token(settings.site)
    if site != settings.site:
        made = marked_as_ours(made, hardware, boot)
        site = settings.site if IDENTITY in made.get("annotations", {}) else site
    return _with_text(made, default_template(Inputs(obj.metadata.name, image.url, disk, site, image.sha256)))


def _with_text(made: dict[str, Any], text: str) -> dict[str, Any]:
    return {"metadata": made, "spec": {"data": text}}


def _image(observed: Observed, machine: Machine, hardware: Hardware, settings: Settings, now: datetime) -> FoundImage:
    """The image that the manifests name; where they name none, the one that the site serves for the version."""
    spec, shared = observed.obj.spec, (observed.infrastructure or TinkerbellCluster()).spec
    architecture, version = capabilities(hardware).architecture or "amd64", machine.spec.version
    if names_image(spec, shared):
        try:
            return FoundImage(image_url(spec, shared, version, architecture))
        except TemplateError as error:
            raise UnusableError("InvalidImageLookup", f"imageLookupFormat: {error}") from error
    found = default_image(settings.images, observed.node_images, version, architecture, now)
    if isinstance(found, MissingImage):
        raise ImagePendingError(found)
    return found


def _has_come_up(workflow: Workflow, hardware: Hardware) -> bool:
    """Whether what was installed runs although its Workflow has failed: the last action leaves the in-memory OS, and
    its own report may be lost. To try again would wipe a node."""
    if not is_at_last_action(workflow):
        return False
    begun = moment(workflow.status.tasks[-1].actions[-1].execution_start or "")
    reported = moment(hardware.metadata.annotations.get(INSTALLED_SYSTEM_UP, ""))
    return begun is not None and reported is not None and reported >= begun


def _failed(progress: Progress, observed: Observed, workflow: Workflow) -> Decision:
    obj = observed.obj
    tried, most = max(number(obj, INSTALL_ATTEMPT, 0), 1), max(number(obj, INSTALL_ATTEMPTS, DEFAULT_ATTEMPTS), 1)
    why = why_failed(workflow)
    if tried >= MOVE_AFTER and (moved := move(progress, observed, tried, why)) is not None:
        return moved
    if tried >= most:
        progress.state = State.FAILED
        message = f"installation failed {tried} of {most} times: {why}; delete the Machine, or raise {INSTALL_ATTEMPTS}"
        progress.note(INSTALLED, False, INSTALLATION_FAILED, message)
        event = emit(TINKERBELL_MACHINE, obj, reason=INSTALLATION_FAILED, message=message, warning=True)
        return progress.waits(INSTALLATION_FAILED, message, mark_server(progress, observed, tried, why), event)
    message = f"attempt {tried} of {most} failed: {why}; it is tried again"
    progress.note(INSTALLED, False, "Retrying", message)
    mark = {"metadata": {"annotations": {INSTALL_ATTEMPT: str(tried + 1)}}}
    return progress.waits(
        "Retrying",
        message,
        # the Workflow goes first: a crash in between counts no attempt that was not one
        delete(WORKFLOW, workflow),
        delete(TEMPLATE, observed.template) if observed.template is not None else None,
        patch(TINKERBELL_MACHINE, obj, mark, locked=True),
        emit(TINKERBELL_MACHINE, obj, reason="InstallationRetried", message=message, warning=True),
    )
