"""Naming templates of a ClusterClass as they are written.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/clusterclass.go (validateNamingStrategies).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ironbell.contract.admission import FieldProblem, invalid
from ironbell.contract.clusters.name_templates import NameTemplateError, render_name
from ironbell.controllers.capi.admission.checks import at, dns_subdomain_fault
from ironbell.kube.decision import Fields

_WORKERS: Final = {
    "machineDeployments": {"machineDeployment": {"topologyName": "topology"}},
    "machinePools": {"machinePool": {"topologyName": "topology"}},
}


def class_naming_problems(spec: Fields) -> Iterator[FieldProblem]:
    """Templates that give no name, or one that objects cannot have."""
    for part in ("infrastructure", "controlPlane"):
        yield from _problems(at(spec, part, "naming", "template"), f"spec.{part}.naming.template", {})
    for kind, variables in _WORKERS.items():
        for one in at(spec, "workers", kind) or ():
            path = f"spec.workers.{kind}[{at(one, 'class')}].naming.template"
            yield from _problems(at(one, "naming", "template"), path, variables)


def _problems(template: str | None, path: str, variables: Mapping[str, Mapping[str, str]]) -> Iterator[FieldProblem]:
    if not template:
        return
    try:
        name = render_name(template, "cluster", "bcdfg", variables)
    except NameTemplateError as error:
        yield invalid(path, template, f"invalid name template: {error.message}")
        return
    if fault := dns_subdomain_fault(name):
        yield invalid(path, template, f"it would give the name {name!r}: {fault}")
