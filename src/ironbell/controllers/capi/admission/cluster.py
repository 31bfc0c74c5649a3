"""Defaults and validation of Clusters by themselves.

Checks that depend on the ClusterClass and on the objects of the Cluster are in `informed_cluster`.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/cluster.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

from ironbell.api.cluster import CLUSTER
from ironbell.base.quantities import decimal
from ironbell.contract.admission import Admission, FieldProblem, forbidden, invalid
from ironbell.controllers.capi.admission import checks
from ironbell.controllers.capi.admission.checks import at
from ironbell.controllers.capi.admission.topology.topology import has_topology, topology_problems
from ironbell.kube.decision import Fields


def default(new: Fields, old: Fields | None) -> Fields:
    """Return a Cluster whose topology's version starts with v."""
    return checks.with_v(new, "spec", "topology", "version")


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a Cluster by itself."""
    return list(_problems(new, old))


def _problems(new: Fields, old: Fields | None) -> Iterator[FieldProblem]:
    yield from checks.name_problems(new)
    spec, old_spec = at(new, "spec") or {}, at(old, "spec") or {}
    if not any(_refers(spec, name) for name in ("controlPlaneRef", "infrastructureRef")) and not has_topology(new):
        yield forbidden("spec", "one of spec.controlPlaneRef, spec.infrastructureRef or spec.topology must be set")
    for name in ("infrastructureRef", "controlPlaneRef"):
        if _refers(old_spec, name) and not _refers(spec, name):
            yield forbidden(f"spec.{name}", "cannot be removed")
    for name in ("pods", "services"):
        blocks = at(spec, "clusterNetwork", name, "cidrBlocks")
        yield from _block_problems(blocks, f"spec.clusterNetwork.{name}.cidrBlocks")
    if has_topology(new):
        yield from topology_problems(new)
    elif has_topology(old):
        yield forbidden("spec.topology", "cannot be removed from an existing Cluster")


def _refers(spec: Fields, name: str) -> bool:
    return bool(at(spec, name, "name"))


def _block_problems(blocks: Any, path: str) -> Iterator[FieldProblem]:
    for number, block in enumerate(blocks or ()):
        if not _is_block(block):
            yield invalid(f"{path}[{number}]", block, f"invalid CIDR address: {block}")


def _is_block(text: str) -> bool:
    address, slash, bits = text.partition("/")
    number = decimal(bits)
    if not slash or number is None or bits != str(number):
        return False
    try:
        ipaddress.ip_interface(f"{address}/{bits}")
    except ValueError:
        return False
    return "%" not in address


ADMISSION: Final = Admission(CLUSTER, default, validate)
