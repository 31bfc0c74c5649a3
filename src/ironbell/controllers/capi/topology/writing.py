"""The writes that bring a topology to its desired state, in their order: infrastructure, control plane, the Cluster's
references, workers.

Infrastructure cluster and control plane belong to the Cluster from the first write on, so that they are deleted with it
even if nothing ever refers to them. Upstream uses a Secret as owner until then.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/reconcile_state.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ironbell.api.cluster import CLUSTER, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK, MACHINE_POOL
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machinehealthcheck import MachineHealthCheck
from ironbell.api.cluster.machinepool import MachinePool
from ironbell.api.kind import Kind
from ironbell.api.meta import Resource
from ironbell.api.unstructured import Unstructured, plain
from ironbell.contract.clusters.references import V1BETA1
from ironbell.controllers.capi.topology.changes import ANNOTATION_REPLACES, Change, change, digest, intent
from ironbell.controllers.capi.topology.computing import Computed
from ironbell.controllers.capi.topology.current import Current, CurrentWorker
from ironbell.controllers.capi.topology.desired.model import Blueprint, TopologyError, Worker
from ironbell.controllers.capi.topology.desired.objects import reference_to
from ironbell.controllers.capi.topology.desired.versions import WorkerVersions
from ironbell.controllers.capi.topology.names import template_name
from ironbell.controllers.capi.topology.plain import MISSING, find, kind_of, name_of, put
from ironbell.kube.decision import Action, AnyKind, Apply, Emit, Fields, delete, emit, patch
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.patches import diff

_REPLACES = ("metadata", "annotations", ANNOTATION_REPLACES)
CREATED, UPDATED, DELETED = "TopologyCreate", "TopologyUpdate", "TopologyDelete"


@dataclass(frozen=True, slots=True)
class Writer:
    """Creates the writes for one Cluster."""

    cluster: Cluster
    """The Cluster as observed."""
    blueprint: Blueprint
    current: Current
    computed: Computed

    def all(self) -> Iterator[Action]:
        """All writes.

        Raises:
            TopologyError: an object would have to become another kind.
        """
        desired, current = self.computed.desired, self.current
        infrastructure = current.infrastructure_cluster
        yield from self._object(
            self.blueprint.infrastructure_cluster.clone_kind, infrastructure, desired.infrastructure_cluster
        )
        yield from self._health_check(current.control_plane_health_check, desired.control_plane_health_check)
        if not self.computed.versions.control_plane.is_pending:
            yield from self._control_plane()
        yield from self._references()
        yield from self._deployments()
        yield from self._pools()

    def _control_plane(self) -> Iterator[Action]:
        desired, current_template = self.computed.desired, self.current.control_plane_machine
        plane, machine, template = (
            desired.control_plane,
            desired.control_plane_machine,
            self.blueprint.control_plane_machine,
        )
        replaced = False
        if machine is not None and template is not None:
            prefix = f"{self.cluster.metadata.name}-"
            actions, name = self._template(template.kind, current_template, machine, prefix, "control plane machines")
            yield from actions
            replaced = current_template is not None and name != current_template.metadata.name
            is_older = self.blueprint.control_plane_contract == V1BETA1
            path = ("infrastructureRef",) if is_older else ("spec", "infrastructureRef")
            plane = put(plane, name, ("spec", "machineTemplate", *path, "name"))
        current = None if self.current.control_plane is None else self.current.control_plane.obj
        yield from self._object(self.blueprint.control_plane.clone_kind, current, plane, path=("spec", "version"))
        unused = current_template if replaced else self.current.replaced_control_plane_machine
        if unused is not None and template is not None:
            yield delete(template.kind, unused)

    def _references(self) -> Iterator[Action]:
        """Write the Cluster's labels, its annotation of the upgrade's step, and its references."""
        desired, cluster, spec = self.computed.desired, self.cluster, self.cluster.spec
        metadata: Fields = {}
        if labels := diff(dict(cluster.metadata.labels), dict(self.computed.labels)):
            metadata["labels"] = labels
        if annotations := diff(dict(cluster.metadata.annotations), dict(self.computed.annotations)):
            metadata["annotations"] = annotations
        body: Fields = {"metadata": metadata} if metadata else {}
        refs = {}
        for name, held, obj in (
            ("infrastructureRef", spec.infrastructure_ref, desired.infrastructure_cluster),
            ("controlPlaneRef", spec.control_plane_ref, desired.control_plane),
        ):
            reference = reference_to(obj)
            if (held.api_group, held.kind, held.name) != (reference["apiGroup"], reference["kind"], reference["name"]):
                refs[name] = reference
        if refs:
            body["spec"] = refs
        if body:
            yield patch(CLUSTER, cluster, body, locked=True)
            yield self._event(UPDATED, f'Updated Cluster "{"/".join(cluster.key)}"')

    def _deployments(self) -> Iterator[Action]:
        versions, held = self.computed.versions.deployments, self.current.deployments
        desired = {worker.topology_name for worker in self.computed.desired.deployments}
        for worker in self.computed.desired.deployments:
            current = held.get(worker.topology_name)
            if current is not None:
                yield from self._updated_deployment(current, worker, versions)
            elif worker.topology_name not in versions.not_created:
                yield from self._new_deployment(worker)
        for name, old_worker in held.items():
            if name not in desired:
                yield from self._health_check(old_worker.health_check, None)
                yield from self._deleted(MACHINE_DEPLOYMENT, old_worker.obj)

    def _new_deployment(self, worker: Worker) -> Iterator[Action]:
        templates = self.blueprint.deployments[worker.class_name]
        yield from self._object(templates.infrastructure.kind, None, worker.infrastructure)
        yield from self._object(templates.bootstrap.kind, None, worker.bootstrap)
        yield from self._object(MACHINE_DEPLOYMENT, None, worker.obj)
        yield from self._health_check(None, worker.health_check)

    def _updated_deployment(
        self, current: CurrentWorker[MachineDeployment], worker: Worker, versions: WorkerVersions
    ) -> Iterator[Action]:
        yield from self._health_check(current.health_check, worker.health_check)
        if is_deleting(current.obj) or current.obj.metadata.name in versions.pending:
            return
        templates = self.blueprint.deployments[worker.class_name]
        prefix, role = f"{self.cluster.metadata.name}-{worker.topology_name}-", f"deployment {worker.topology_name}"
        actions, infrastructure = self._template(
            templates.infrastructure.kind,
            current.infrastructure,
            worker.infrastructure,
            prefix,
            f"{role} infrastructure",
        )
        yield from actions
        actions, bootstrap = self._template(
            templates.bootstrap.kind,
            current.bootstrap,
            worker.bootstrap,
            prefix,
            f"{role} bootstrap",
            may_change_kind=True,
        )
        yield from actions
        machine = ("spec", "template", "spec")
        obj = put(worker.obj, infrastructure, (*machine, "infrastructureRef", "name"))
        obj = put(obj, bootstrap, (*machine, "bootstrap", "configRef", "name"))
        yield from self._object(MACHINE_DEPLOYMENT, current.obj, obj, path=(*machine, "version"))

    def _pools(self) -> Iterator[Action]:
        versions, held = self.computed.versions.pools, self.current.pools
        desired = {worker.topology_name for worker in self.computed.desired.pools}
        for worker in self.computed.desired.pools:
            current = held.get(worker.topology_name)
            if current is None and worker.topology_name not in versions.not_created:
                yield from self._pool(None, worker)
            elif current is not None and current.obj.metadata.name not in versions.pending:
                yield from self._pool(current, worker)
        for name, old_worker in held.items():
            if name not in desired:
                yield from self._deleted(MACHINE_POOL, old_worker.obj)

    def _pool(self, current: CurrentWorker[MachinePool] | None, worker: Worker) -> Iterator[Action]:
        if current is not None and is_deleting(current.obj):
            return
        templates = self.blueprint.pools[worker.class_name]
        infrastructure = None if current is None else current.infrastructure
        bootstrap = None if current is None else current.bootstrap
        yield from self._object(templates.infrastructure.clone_kind, infrastructure, worker.infrastructure)
        yield from self._object(templates.bootstrap.clone_kind, bootstrap, worker.bootstrap)
        path = ("spec", "template", "spec", "version")
        yield from self._object(MACHINE_POOL, None if current is None else current.obj, worker.obj, path=path)

    def _object(
        self, kind: AnyKind, current: Resource | None, obj: Fields, *, path: tuple[str, ...] = ()
    ) -> Iterator[Action]:
        """Create an object, or change it in place; `path` is the path of its version."""
        desired = intent(obj)
        if current is None:
            yield _apply(kind, desired)
            yield self._event(CREATED, f"Created {_described(desired)}")
            return
        live = plain(current)
        if not isinstance(current, Unstructured):
            live = {**live, "apiVersion": kind.api_version, "kind": kind.kind}
        _check_kind(live, desired)
        if change(live, desired) is Change.NONE:
            return
        yield _apply(kind, desired)
        yield self._event(UPDATED, f"Updated {_described(desired)}{_version_change(live, desired, path)}")

    def _template(
        self,
        kind: Kind[Unstructured],
        current: Unstructured | None,
        template: Fields,
        prefix: str,
        role: str,
        *,
        may_change_kind: bool = False,
    ) -> tuple[list[Action], str]:
        """Create, change or replace a template; return the actions, and the name of the template after them."""
        replaced = "" if current is None else current.metadata.annotations.get(ANNOTATION_REPLACES, "")
        if replaced:
            template = put(template, replaced, _REPLACES)
        desired = intent(template)
        if current is None:
            return [_apply(kind, desired), self._event(CREATED, f"Created {_described(desired)}")], name_of(desired)
        if not may_change_kind:
            _check_kind(current.body, desired)
        changed = change(current.body, desired, is_template=True)
        if changed is Change.NONE:
            return [], name_of(desired)
        if changed is Change.METADATA:
            message = f"Updated {_described(desired)} (metadata changes)"
            return [_apply(kind, desired), self._event(UPDATED, message)], name_of(desired)
        old_name = current.metadata.name
        name = template_name(prefix, self.cluster, role, digest(desired.get("spec")), old_name)
        body = intent(put(put(template, name, ("metadata", "name")), old_name, _REPLACES))
        message = f'Created {_described(body)} as a replacement for "{old_name}" (template rotation)'
        return [_apply(kind, body), self._event(CREATED, message)], name

    def _health_check(self, current: MachineHealthCheck | None, desired: Fields | None) -> Iterator[Action]:
        if desired is not None:
            yield from self._object(MACHINE_HEALTH_CHECK, current, desired)
        elif current is not None and not is_deleting(current):
            yield from self._deleted(MACHINE_HEALTH_CHECK, current)

    def _deleted(self, kind: AnyKind, obj: Resource) -> Iterator[Action]:
        if not is_deleting(obj):
            yield delete(kind, obj)
            yield self._event(DELETED, f'Deleted {kind.kind} "{"/".join(obj.key)}"')

    def _event(self, reason: str, message: str) -> Emit:
        return emit(CLUSTER, self.cluster, reason=reason, message=message)


def _apply(kind: AnyKind, body: Fields) -> Apply:
    metadata = body["metadata"]
    return Apply(kind, metadata["namespace"], metadata["name"], body)


def _described(body: Fields) -> str:
    return f'{kind_of(body)} "{body["metadata"]["namespace"]}/{name_of(body)}"'


def _check_kind(live: Fields, desired: Fields) -> None:
    live_group, desired_group = (str(obj.get("apiVersion", "")).rpartition("/")[0] for obj in (live, desired))
    subject = f"{kind_of(live)}.{live_group}/{name_of(live)}"
    if live_group != desired_group:
        raise TopologyError(
            f'metadata.apiVersion: Forbidden: apiVersion.group of {subject} cannot be changed from "{live_group}"'
            f' to "{desired_group}" to prevent incompatible changes in the Cluster'
        )
    if kind_of(live) != kind_of(desired):
        raise TopologyError(
            f'metadata.kind: Forbidden: apiVersion.kind of {subject} cannot be changed from "{kind_of(live)}" to'
            f' "{kind_of(desired)}" to prevent incompatible changes in the Cluster'
        )


def _version_change(live: Fields, desired: Fields, path: tuple[str, ...]) -> str:
    old, new = find(live, path), find(desired, path)
    if not path or old is MISSING or new is MISSING or old == new:
        return ""
    return f" with version change from {old} to {new}"
