"""Advice by the reason that an object reports: when a wait ends, and what the user can do about it. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.bmc.driver import BmcProblem
from ironbell.contract.causes import Weight
from ironbell.controllers.tink.names import Reason


@dataclass(frozen=True, slots=True)
class Advice:
    """The meaning of a reason for the user."""

    ends_when: str = ""
    remedy: str = ""
    weight: Weight = Weight.NEEDS_HELP


def _waiting(ends_when: str) -> Advice:
    return Advice(ends_when, weight=Weight.WAITING)


OF_TINKERBELL_MACHINE: Final[dict[str, Advice]] = {
    "WaitingForHardware": Advice(
        "a suitable server is released or added",
        "Add Hardware, release a server, or reduce the number of Machines",
    ),
    "InvalidAffinity": Advice("the label selector is valid", "Correct spec.hardwareAffinity of the machine template"),
    "WaitingForBootstrapData": Advice(),
    "WaitingForCluster": Advice(),
    "WaitingForOwner": Advice(),
    "WaitingForTurn": Advice("other servers of the same rack have been powered on"),
    "GivingUserData": Advice("the metadata service serves the bootstrap data"),
    "WaitingForOldWorkflow": Advice("the previous attempt's Workflow is deleted"),
    "WaitingForOldTemplate": Advice("the previous attempt's Template is deleted"),
    "Installing": Advice("the Workflow succeeds"),
    "Booting": Advice("the installed system reports, or its Node is Ready"),
    "Wiping": Advice("the disks are wiped"),
    "PoweringOff": Advice("the BMC reports that the server is off"),
    "CleaningUp": Advice("the Workflow and the Template are deleted"),
    "StoppingInstallation": Advice("the Workflow is deleted"),
    "HardwareHeld": Advice(
        "annotation ironbell.dev/hold is removed from the Hardware",
        "Find out why the server is held, then remove the annotation",
    ),
    "HardwareNotConfirmed": Advice(
        "a person confirms what a restore recorded", "Check the server, then run `ironbell hardware confirm`"
    ),
    "HardwareLost": Advice("the Machine is deleted", "Delete the Machine; its owner creates another"),
    "HardwareUnusable": Advice("the Hardware can be installed", "Correct the fields of the Hardware"),
    "InstallationFailed": Advice(
        "the Machine is replaced", "Correct the cause, then delete the Machine; its owner creates another"
    ),
    "ForeignWorkflow": Advice("that Workflow is deleted", "Delete the Workflow if nothing needs it"),
    "ForeignTemplate": Advice("that Template is deleted", "Delete the Template if nothing needs it"),
    "ForeignJob": Advice("that Job is deleted", "Delete the Job if nothing needs it"),
    "TemplateNotFound": Advice("the Template exists", "Create the Template, or correct the name"),
    "TemplateEmpty": Advice("the Template has spec.data", "Fill in spec.data of the Template"),
    "MissingISO": Advice("spec.bootOptions.isoURL is set", "Set it in the TinkerbellMachineTemplate"),
    "NodeImageMissing": Advice(
        "the image is served", "Build it, or name another image in spec.imageLookupFormat of the TinkerbellCluster"
    ),
    "NodeImagesUnknown": Advice(
        "the index of images can be read", "Make the index readable for Ironbell's controllers"
    ),
    "NoNodeImages": Advice(
        "an image is named or served", "Serve images of nodes, or set spec.imageLookupFormat of the TinkerbellCluster"
    ),
    "InvalidImageLookup": Advice("the format is valid", "Correct imageLookupFormat"),
    "MetadataURLUnknown": Advice("the metadata URL is known", "Set it, or use a template of your own"),
    "WaitingForManualAction": Advice(
        "the server has booted over the network", "Power it on, or restart it, and boot it over the network"
    ),
    "BMCNotContactable": Advice("the BMC answers", "Check the BMC's address, Secret, cable and power"),
    "KeepDisksUnknown": Advice("its inventory has the disks to keep", "Correct annotation ironbell.dev/keep-disks"),
    "DisksKept": Advice("a disk may be written", "Keep fewer disks in annotation ironbell.dev/keep-disks"),
    "NoReport": Advice(
        "the system reports, its Node joins, or the Machine is replaced",
        "Check the server's console; delete the Machine to try again",
    ),
    "InvalidWipePolicy": Advice("the wipe policy is valid", "Correct annotation ironbell.dev/wipe"),
}

OF_WORKFLOW: Final[dict[str, Advice]] = {
    Reason.DISABLED: Advice("annotation tinkerbell.org/disabled is removed", "Remove the annotation"),
    Reason.TEMPLATE_MISSING: Advice("the Template exists", "Create the Template, or correct spec.templateRef"),
    Reason.TEMPLATE_NOT_RENDERED: Advice("the Template renders", "Correct the Template's spec.data"),
    Reason.HARDWARE_MISSING: Advice("the Hardware exists", "Create the Hardware, or correct spec.hardwareRef"),
    Reason.HARDWARE_ERROR: Advice("the Hardware is valid", "Correct the Hardware"),
    Reason.INVALID_BOOT_OPTIONS: Advice("spec.bootOptions is valid", "Correct spec.bootOptions"),
    Reason.NO_BMC: Advice("the Hardware names a BMC", "Set spec.bmcRef of the Hardware, or boot the server by hand"),
    Reason.BMC_SHARED: Advice("only one Hardware names that BMC", "Correct spec.bmcRef of the other Hardware"),
    Reason.BOOT_TOKEN_REVOKED: Advice("the server boots again", "Power cycle the server"),
    Reason.PREPARING: _waiting("the Hardware may netboot"),
    Reason.BOOT_JOB_RUNNING: _waiting("the BMC has started the server"),
    Reason.FINISHING: _waiting("the boot options are undone"),
    Reason.ACTIONS_RUNNING: _waiting("the last action succeeds"),
    Reason.AGENT_NOT_SEEN: _waiting("the in-memory OS has booted and its agent requests the first action"),
}

FAILED_WORKFLOW: Final[dict[str, str]] = {
    Reason.BOOT_JOB_FAILED: "Check the server's BMC",
    Reason.AGENT_NEVER_CAME: (
        "Check the server's power, console, network and boot order, and that its MAC is the one in the Hardware"
    ),
    Reason.AGENT_SILENT: "Check the server's power, console and network",
    Reason.ACTION_TIMEOUT: "Check the server's power and network, or raise the action's timeout",
    Reason.GLOBAL_TIMEOUT: "Raise global_timeout in the Template, or find out which action is slow",
}
"""Remedies for a failed Workflow, by reason. Other reasons are the action's own failure."""

SILENT_AFTER_S: Final = 600.0
"""Delay after which an agent that has not requested its first action needs attention, in seconds."""

OF_BMC: Final[dict[str, Advice]] = {
    BmcProblem.UNREACHABLE: Advice("the BMC answers", "Check its address, port, cable and power"),
    BmcProblem.AUTHENTICATION: Advice("the BMC accepts the login", "Correct username and password in Secret {secret}"),
    BmcProblem.CERTIFICATE: Advice(
        "the certificate is trusted", "Put its authority under ca.crt into Secret {secret}, or set insecureTLS"
    ),
    BmcProblem.CREDENTIALS: Advice("the Secret has both keys", "Create Secret {secret} with username and password"),
    BmcProblem.ADDRESS: Advice("the address is confirmed or reverted", "Confirm the address, or revert it"),
    BmcProblem.REJECTED: Advice("the BMC accepts the request", "Check the BMC's settings, licence and firmware"),
    BmcProblem.OUTCOME_UNKNOWN: Advice("the server was checked", "Check the server's power, then create the Job again"),
}
