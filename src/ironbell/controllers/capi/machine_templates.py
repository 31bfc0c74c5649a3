"""Machine templates compared: in what a Machine made from one differs from what another asks for.

Labels, annotations, taints, timeouts, readiness gates and minReadySeconds change in place and count for nothing here.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinedeployment/mdutil/util.go (MachineTemplateUpToDate).
"""

from __future__ import annotations

from ironbell.api.cluster.machine import MachineTemplateSpec
from ironbell.contract.templates import SUFFIX


def differences(current: MachineTemplateSpec, desired: MachineTemplateSpec) -> list[str]:
    """What is to change, a line for each; empty if nothing is."""
    have, want = current.spec, desired.spec
    found = []
    if have.version != want.version:
        found.append(f"Version {have.version}, {want.version} required")
    if have.bootstrap != want.bootstrap:
        if have.bootstrap.config_ref.name:
            found.append(_outdated(have.bootstrap.config_ref.kind))
        else:
            secrets = (have.bootstrap.data_secret_name or "nil", want.bootstrap.data_secret_name or "nil")
            found.append("spec.bootstrap.dataSecretName {}, {} required".format(*secrets))
    if have.infrastructure_ref != want.infrastructure_ref:
        found.append(_outdated(have.infrastructure_ref.kind))
    if have.failure_domain != want.failure_domain:
        found.append(f"Failure domain {have.failure_domain}, {want.failure_domain} required")
    return found


def _outdated(template_kind: str) -> str:
    return f"{template_kind.removesuffix(SUFFIX)} is not up-to-date"
