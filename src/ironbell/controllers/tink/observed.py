"""The objects on which a decision about a Workflow depends, and the indexes that find them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ironbell.api.bmc.job import JOB, Job
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.template import TEMPLATE, Template
from ironbell.api.tinkerbell.workflow import WORKFLOW, BootMode, Workflow
from ironbell.controllers.tink import states
from ironbell.controllers.tink.names import FINALIZER_CLEANUP
from ironbell.kube.decision import Key
from ironbell.kube.finalizers import has_finalizer, is_deleting
from ironbell.kube.reconciler import Cache, Index

NETBOOT_JOB: Final = "netboot-"
ISO_MOUNT_JOB: Final = "iso-mount-"
ISO_EJECT_JOB: Final = "iso-eject-"
CUSTOMBOOT_JOB: Final = "customboot-preparing-"
CUSTOMBOOT_POST_JOB: Final = "customboot-post-"
JOB_PREFIXES: Final = (NETBOOT_JOB, ISO_MOUNT_JOB, ISO_EJECT_JOB, CUSTOMBOOT_JOB, CUSTOMBOOT_POST_JOB)

ISO_MODES: Final = frozenset({BootMode.ISO, BootMode.ISOBOOT})


@dataclass(frozen=True, slots=True)
class Observed:
    """A Workflow with the objects that it refers to."""

    workflow: Workflow
    template: Template | None = None
    hardware: Hardware | None = None
    jobs: dict[str, Job] = field(default_factory=dict)
    """Existing bmc Jobs with the names of this Workflow's Jobs."""
    others_netbooting: tuple[str, ...] = ()
    """Other Workflows for the same Hardware that need its permission to netboot."""
    bmc_sharers: tuple[str, ...] = ()
    """Other Hardware that names the same BMC, so that it is unknown which server the BMC controls."""


def template_key(workflow: Workflow) -> str:
    """Index value of the Template of a Workflow."""
    return f"{workflow.metadata.namespace}/{workflow.spec.template_ref}"


def hardware_key(workflow: Workflow) -> str:
    """Index value of the Hardware of a Workflow."""
    return f"{workflow.metadata.namespace}/{workflow.spec.hardware_ref}"


def is_new(workflow: Workflow) -> bool:
    """Return whether the Workflow has not been rendered."""
    return workflow.status.state in (states.NEW, states.LEGACY_PENDING)


BY_TEMPLATE: Final = Index(
    WORKFLOW, "tink-template", lambda wf: [template_key(wf)] if wf.spec.template_ref and is_new(wf) else []
)
"""Only Workflows that have not been rendered: the others no longer read their Template."""
BY_HARDWARE: Final = Index(WORKFLOW, "tink-hardware", lambda wf: [hardware_key(wf)] if wf.spec.hardware_ref else [])


def bmc_keys(hardware: Hardware) -> list[str]:
    """Index values of the BMC of a Hardware."""
    reference = hardware.spec.bmc_ref
    return [f"{hardware.metadata.namespace}/{reference.name}"] if reference is not None and reference.name else []


BY_BMC: Final = Index(HARDWARE, "tink-bmc", bmc_keys)


def sharers_of_bmc(cache: Cache, hardware: Hardware) -> tuple[str, ...]:
    """Names of other Hardware with the same BMC."""
    return tuple(
        other.metadata.name
        for value in bmc_keys(hardware)
        for other in cache.indexed(BY_BMC, value)
        if other.key != hardware.key
    )


def of_template(template: Template, cache: Cache) -> Iterable[Key]:
    """Workflows that a Template's change concerns."""
    return [workflow.key for workflow in cache.indexed(BY_TEMPLATE, "/".join(template.key))]


def of_hardware(hardware: Hardware, cache: Cache) -> Iterable[Key]:
    """Workflows that a Hardware's change concerns."""
    return [workflow.key for workflow in cache.indexed(BY_HARDWARE, "/".join(hardware.key))]


def of_job(job: Job, _cache: Cache) -> Iterable[Key]:
    """The Workflow whose Jobs have this name, even if another object owns the Job."""
    namespace, name = job.key
    return [(namespace, name.removeprefix(prefix)) for prefix in JOB_PREFIXES if name.startswith(prefix)]


def observe(cache: Cache, key: Key) -> Observed | None:
    """Gather what the decision needs."""
    workflow = cache.get(WORKFLOW, *key)
    if workflow is None:
        return None
    namespace, name = key
    spec = workflow.spec
    by_name = {
        prefix + name: cache.get(JOB, namespace, prefix + name) for prefix in _prefixes(spec.boot_options.boot_mode)
    }
    hardware = cache.get(HARDWARE, namespace, spec.hardware_ref) if spec.hardware_ref else None
    return Observed(
        workflow,
        cache.get(TEMPLATE, namespace, spec.template_ref) if spec.template_ref and is_new(workflow) else None,
        hardware,
        {job_name: job for job_name, job in by_name.items() if job is not None},
        _others_netbooting(cache, workflow) if has_finalizer(workflow, FINALIZER_CLEANUP) else (),
        sharers_of_bmc(cache, hardware) if hardware is not None and spec.boot_options.boot_mode else (),
    )


def _prefixes(mode: str) -> tuple[str, ...]:
    if mode == BootMode.NETBOOT:
        return (NETBOOT_JOB,)
    if mode in ISO_MODES:
        return (ISO_MOUNT_JOB, ISO_EJECT_JOB)
    return (CUSTOMBOOT_JOB, CUSTOMBOOT_POST_JOB) if mode == BootMode.CUSTOMBOOT else ()


def _others_netbooting(cache: Cache, workflow: Workflow) -> tuple[str, ...]:
    return tuple(
        other.metadata.name
        for other in cache.indexed(BY_HARDWARE, hardware_key(workflow))
        if other.metadata.uid != workflow.metadata.uid and _needs_netboot(other)
    )


def _needs_netboot(workflow: Workflow) -> bool:
    return (
        workflow.spec.boot_options.toggle_allow_netboot
        and not is_deleting(workflow)
        and workflow.status.state in (states.PREPARING, states.PENDING, states.RUNNING)
    )
