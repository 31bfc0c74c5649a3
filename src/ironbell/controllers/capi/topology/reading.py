"""Reading a topology's objects from the cache. A missing object is an error; a kind that was not listed yet is a wait.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/blueprint.go, current_state.go.
"""

from __future__ import annotations

from ironbell.api.cluster.classes.clusterclass import ClusterClass
from ironbell.api.cluster.common import TemplateReference
from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured
from ironbell.contract.clusters.external import External, State, read_reference, read_version
from ironbell.contract.clusters.references import Contracted, NoSuchKindError, Reference, resolve_version
from ironbell.contract.templates import SUFFIX
from ironbell.controllers.capi.topology.desired.model import Blueprint, Template, TopologyError, WorkerTemplates
from ironbell.controllers.capi.topology.indexes import is_owned
from ironbell.kube.reconciler import Cache


class NotYetError(Exception):
    """A kind has not been listed yet; the key is reconciled again when it has."""


def read_blueprint(cache: Cache, class_: ClusterClass) -> Blueprint:
    """The class with its templates.

    Raises:
        NotYetError: templates of a kind have not been listed yet.
        TopologyError: a template is missing.
    """
    spec = class_.spec
    machine = spec.control_plane.machine_infrastructure.template_ref
    contract = _clone_contract(cache, spec.control_plane.template_ref).contract
    return Blueprint(
        cluster_class=class_,
        infrastructure_cluster=_template(
            cache, class_, spec.infrastructure.template_ref, "infrastructure cluster template", is_cloned=True
        ),
        control_plane=_template(
            cache, class_, spec.control_plane.template_ref, "control plane template", is_cloned=True
        ),
        control_plane_contract=contract,
        control_plane_machine=_template(cache, class_, machine, "control plane's machine template")
        if machine.name
        else None,
        deployments={
            worker.class_: WorkerTemplates(
                _template(
                    cache, class_, worker.bootstrap.template_ref, f"bootstrap config template of {worker.class_}"
                ),
                _template(
                    cache,
                    class_,
                    worker.infrastructure.template_ref,
                    f"infrastructure machine template of {worker.class_}",
                ),
            )
            for worker in spec.workers.machine_deployments
        },
        pools={
            worker.class_: WorkerTemplates(
                _template(
                    cache,
                    class_,
                    worker.bootstrap.template_ref,
                    f"bootstrap config template of {worker.class_}",
                    is_cloned=True,
                ),
                _template(
                    cache,
                    class_,
                    worker.infrastructure.template_ref,
                    f"infrastructure machine pool template of {worker.class_}",
                    is_cloned=True,
                ),
            )
            for worker in spec.workers.machine_pools
        },
    )


def _template(
    cache: Cache, class_: ClusterClass, reference: TemplateReference, role: str, *, is_cloned: bool = False
) -> Template:
    where = class_.metadata
    external = read_version(cache, reference.api_version, reference.kind, where.namespace, reference.name)
    if external.state is State.UNKNOWN:
        raise NotYetError(str(external))
    if not external.exists:
        name = f"ClusterClass {where.namespace}/{where.name}"
        raise TopologyError(f"error reading the ClusterClass: failed to get {role} for {name}: {external}")
    kind, obj = external.kind_and_object
    return Template(obj.body, kind, _clone_contract(cache, reference).kind if is_cloned else None)


def _clone_contract(cache: Cache, reference: TemplateReference) -> Contracted:
    group, _, version = reference.api_version.rpartition("/")
    try:
        return resolve_version(cache, group, version, reference.kind.removesuffix(SUFFIX))
    except NoSuchKindError as error:
        raise TopologyError(f"error reading the ClusterClass: {error.message}") from error


def read_owned(
    cache: Cache, reference: Reference, namespace: str, kind: Kind[Unstructured], *, needed: bool, by: str
) -> External | None:
    """An object of the topology, in the class's version if group and kind are the class's; None if it is missing and
    not needed.

    Raises:
        NotYetError: objects of the kind have not been listed yet.
        TopologyError: the object is needed but missing, or it does not belong to a topology.
    """
    if (reference.api_group, reference.kind) == (kind.group, kind.kind):
        external = read_version(cache, kind.api_version, kind.kind, namespace, reference.name)
    else:
        external = read_reference(cache, reference, namespace)
    if external.state is State.UNKNOWN:
        raise NotYetError(str(external))
    if external.obj is None:
        if not needed:
            return None
        raise TopologyError(f"error reading current state of the Cluster topology: {external}")
    if not is_owned(external.obj):
        raise TopologyError(f"{external} referenced from {by} is not topology owned")
    return external
