"""Workflow: a Template carried out on one machine, and its progress.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/workflow.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import field

from ironbell.api.bmc.action import Action
from ironbell.api.crd.markers import Int64, Schema, Time, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class WorkflowState(StrEnum):
    """Values of `status.state` and of an action's `state`; a new Workflow has none of them (empty)."""

    PREPARING = "PREPARING"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    POST = "POST"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"


class BootMode(StrEnum):
    """Values of `bootOptions.bootMode`; `iso` is the older spelling of `isoboot`."""

    NETBOOT = "netboot"
    ISOBOOT = "isoboot"
    ISO = "iso"
    CUSTOMBOOT = "customboot"


class TemplateRendering(StrEnum):
    """Values of `status.templateRendering`."""

    SUCCESSFUL = "successful"
    FAILED = "failed"


class CustombootConfig(Model, frozen=True):
    """BMC operations of boot mode customboot."""

    preparing_actions: Annotated[list[Action], Schema("BMC operations before the first action.")] = []
    post_actions: Annotated[list[Action], Schema("BMC operations after the last action succeeded.")] = []


class BootOptions(Model, frozen=True):
    """Boot of the machine into the in-memory OS."""

    toggle_allow_netboot: Annotated[
        bool, Schema("Allow the Hardware to netboot before the first action, and forbid it after the last.")
    ] = False
    iso_url: Annotated[
        str, Schema("Address of the ISO image that the BMC mounts in boot mode isoboot.", format="uri")
    ] = field(default="", name="isoURL")
    boot_mode: Annotated[
        str, Schema("How the BMC boots the machine; empty leaves the BMC alone.", enum=tuple(BootMode))
    ] = ""
    customboot_config: Annotated[CustombootConfig | None, Schema("BMC operations of boot mode customboot.")] = field(
        default=None, name="custombootConfig"
    )


class WorkflowSpec(Model, frozen=True):
    """Template to carry out, and the Hardware to carry it out on."""

    template_ref: Annotated[str, Schema("Name of the Template, in the same namespace.")] = ""
    hardware_ref: Annotated[str, Schema("Name of the Hardware, in the same namespace.")] = ""
    hardware_map: Annotated[dict[str, str], Schema("Further variables for the Template.")] = {}
    disabled: Annotated[bool | None, Schema("Do not start; a Workflow that has started goes on.")] = None
    boot_options: Annotated[BootOptions, Schema("How the machine is brought into the in-memory OS.")] = BootOptions()


class AllowNetbootStatus(Model, frozen=True):
    """Changes of `allowPXE` that are done."""

    toggled_true: Annotated[bool, Schema("The Hardware was allowed to netboot.")] = False
    toggled_false: Annotated[bool, Schema("The Hardware was forbidden to netboot again.")] = False


class BootJobStatus(Model, frozen=True):
    """One BMC Job of the Workflow."""

    uid: Annotated[str, Schema("UID of the Job that was created.")] = ""
    complete: Annotated[bool, Schema("The Job has succeeded.")] = False
    existing_job_deleted: Annotated[bool, Schema("An older Job of this name was deleted.")] = False


class BootOptionsStatus(Model, frozen=True):
    """Progress of the boot options."""

    allow_netboot: Annotated[AllowNetbootStatus, Schema("Changes of allowPXE.")] = AllowNetbootStatus()
    jobs: Annotated[dict[str, BootJobStatus], Schema("BMC Jobs by name.")] = {}


class CurrentState(Model, frozen=True):
    """The action that the Workflow is at."""

    agent_id: Annotated[str, Schema("Agent that carries out the current task.")] = field(default="", name="agentID")
    task_id: Annotated[str, Schema("Id of the current task.")] = field(default="", name="taskID")
    action_id: Annotated[str, Schema("Id of the current action.")] = field(default="", name="actionID")
    state: Annotated[str, Schema("State of the current action.")] = ""
    action_name: Annotated[str, Schema("Name of the current action.")] = ""
    task_name: Annotated[str, Schema("Name of the current task.")] = ""


class Namespaces(Model, frozen=True):
    """Linux namespaces of an action's container."""

    network: Annotated[str, Schema("Network namespace, such as host.")] = ""
    pid: Annotated[str, Schema("Process namespace, such as host.")] = ""


class WorkflowAction(Model, frozen=True):
    """One rendered action, and how it went."""

    id: Annotated[str, Schema("Id of the action, unique in the Workflow.")] = required(str)
    name: Annotated[str, Schema("Name of the action.")] = ""
    image: Annotated[str, Schema("OCI image, or name of a built-in action.")] = ""
    timeout: Annotated[Int64, Schema("Seconds that the action may take; 0 means no limit.")] = 0
    command: Annotated[list[str], Schema("Command line instead of the image's.")] = []
    volumes: Annotated[list[str], Schema("Mounts, each as source:target with options.")] = []
    pid: Annotated[str, Schema("Deprecated: process namespace; use namespaces.pid.")] = ""
    namespaces: Annotated[Namespaces | None, Schema("Linux namespaces to share with the host.")] = None
    environment: Annotated[dict[str, str], Schema("Environment variables.")] = {}
    state: Annotated[str, Schema("State of the action.")] = ""
    execution_start: Annotated[Time, Schema("When the agent started the action.")] = None
    execution_stop: Annotated[Time, Schema("When the action ended.")] = None
    execution_duration: Annotated[str, Schema("How long it took, as a Go duration.")] = ""
    message: Annotated[str, Schema("Last message of the action, or why it failed.")] = ""


class WorkflowTask(Model, frozen=True):
    """One rendered task: the actions of one agent."""

    name: Annotated[str, Schema("Name of the task.")] = required(str)
    id: Annotated[str, Schema("Id of the task, unique in the Workflow.")] = required(str)
    agent_id: Annotated[str, Schema("Agent that carries out the task.")] = required(str, name="agentID")
    actions: Annotated[list[WorkflowAction], Schema("Actions in order.")] = required(list)
    volumes: Annotated[list[str], Schema("Mounts of all actions.")] = []
    environment: Annotated[dict[str, str], Schema("Environment variables of all actions.")] = {}


class WorkflowCondition(Model, frozen=True):
    """One observation about a Workflow."""

    type: Annotated[str, Schema("Type of the condition.")] = required(str)
    status: Annotated[str, Schema("True, False or Unknown.")] = required(str)
    reason: Annotated[str, Schema("Reason of the status, as one CamelCase word for programs.")] = ""
    message: Annotated[str, Schema("Reason of the status, as a message for people.")] = ""
    time: Annotated[Time, Schema("When it was observed.")] = None


class WorkflowStatus(Model, frozen=True):
    """Observed state of the Workflow."""

    agent_id: Annotated[str, Schema("Agent that may fetch actions now.")] = field(default="", name="agentID")
    state: Annotated[
        str, Schema("PREPARING, PENDING, RUNNING, POST, SUCCESS, FAILED or TIMEOUT; empty before the start.")
    ] = ""
    boot_options: Annotated[BootOptionsStatus, Schema("Progress of the boot options.")] = BootOptionsStatus()
    template_rendering: Annotated[str, Schema("Whether the Template could be rendered: successful or failed.")] = ""
    global_timeout: Annotated[Int64, Schema("Seconds that all actions together may take; 0 means no limit.")] = 0
    global_execution_stop: Annotated[Time, Schema("When the Workflow times out.")] = None
    current_state: Annotated[CurrentState | None, Schema("The action that the Workflow is at.")] = None
    tasks: Annotated[list[WorkflowTask], Schema("Tasks that the Template was rendered to.")] = []
    conditions: Annotated[list[WorkflowCondition], Schema("Latest observations.", list_type="atomic")] = []


class Workflow(Resource, frozen=True):
    """A Template carried out on one machine."""

    spec: WorkflowSpec = WorkflowSpec()
    status: WorkflowStatus = WorkflowStatus()


WORKFLOW: Kind[Workflow] = Kind(
    group="tinkerbell.org",
    version="v1alpha1",
    kind="Workflow",
    plural="workflows",
    model=Workflow,
    short_names=("wf",),
    categories=("tinkerbell",),
    columns=(
        Column("Template", ".spec.templateRef"),
        Column("State", ".status.state"),
        Column("Task", ".status.currentState.taskName", priority=1),
        Column("Action", ".status.currentState.actionName"),
        Column("Agent", ".status.currentState.agentID"),
        Column("Hardware", ".spec.hardwareRef"),
        Column("Template-Rendering", ".status.templateRendering", priority=1),
    ),
    has_status=True,
)
