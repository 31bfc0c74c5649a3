"""The writes that bring a topology to what it is to be, in their order: infrastructure, control plane, the Cluster's
references, workers.

Infrastructure cluster and control plane belong to the Cluster from the first write on, so that they go with it even
if nothing ever refers to them. Upstream uses a Secret as owner until then.

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
from ironbell.controllers.capi.topology.desired.model import Blueprint, Worker
from ironbell.controllers.capi.topology.desired.objects import reference_to
from ironbell.controllers.capi.topology.desired.versions import WorkerVersions
from ironbell.controllers.capi.topology.errors import TopologyError
from ironbell.controllers.capi.topology.names import template_name
from ironbell.controllers.capi.topology.plain import MISSING, find, kind_of, name_of, put
from ironbell.kube.decision import Action, AnyKind, Apply, Emit, Fields, delete, emit, patch
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.patches import diff

_REPLACES = ("metadata", "annotations", ANNOTATION_REPLACES)
CREATED, UPDATED, DELETED = "TopologyCreate", "TopologyUpdate", "TopologyDelete"


@dataclass(frozen=True, slots=True)
class Writer:
    """Makes the writes for one Cluster."""

    cluster: Cluster
    """As it was observed."""
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
            self.blueprint.infrastructure_cluster.kind_made, infrastructure, desired.infrastructure_cluster
        )
        yield from self._health_check(current.control_plane_health_check, desired.control_plane_health_check)
        if not self.computed.versions.control_plane.is_pending:
            yield from self._control_plane()
        yield from self._references()
        yield from self._deployments()
        yield from self._pools()

    def _control_plane(self) -> Iterator[Action]:
        desired, held = self.computed.desired, self.current.control_plane_machine
        plane, machine, template = (
            desired.control_plane,
            desired.control_plane_machine,
            self.blueprint.control_plane_machine,
        )
        replaced = False
        if machine is not None and template is not None:
            prefix = f"{self.cluster.metadata.name}-"
            actions, name = self._template(template.kind, held, machine, prefix, "control plane machines")
            yield from actions
            replaced = held is not None and name != held.metadata.name
            is_older = self.blueprint.control_plane_contract == V1BETA1
            path = ("infrastructureRef",) if is_older else ("spec", "infrastructureRef")
            plane = put(plane, name, ("spec", "machineTemplate", *path, "name"))
        current = None if self.current.control_plane is None else self.current.control_plane.obj
        yield from self._object(self.blueprint.control_plane.kind_made, current, plane, path=("spec", "version"))
        gone = held if replaced else self.current.control_plane_machine_before
        if gone is not None and template is not None:
            yield delete(template.kind, gone)

    def _references(self) -> Iterator[Action]:
        """The Cluster's labels, its annotation of the upgrade's step, and what it refers to."""
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
            wanted = reference_to(obj)
            if (held.api_group, held.kind, held.name) != (wanted["apiGroup"], wanted["kind"], wanted["name"]):
                refs[name] = wanted
        if refs:
            body["spec"] = refs
        if body:
            yield patch(CLUSTER, cluster, body, locked=True)
            yield self._tell(UPDATED, f'Updated Cluster "{"/".join(cluster.key)}"')

    def _deployments(self) -> Iterator[Action]:
        versions, held = self.computed.versions.deployments, self.current.deployments
        wanted = {one.topology_name for one in self.computed.desired.deployments}
        for one in self.computed.desired.deployments:
            current = held.get(one.topology_name)
            if current is not None:
                yield from self._deployment_updated(current, one, versions)
            elif one.topology_name not in versions.not_created:
                yield from self._deployment_made(one)
        for name, gone in held.items():
            if name not in wanted:
                yield from self._health_check(gone.health_check, None)
                yield from self._deleted(MACHINE_DEPLOYMENT, gone.obj)

    def _deployment_made(self, one: Worker) -> Iterator[Action]:
        templates = self.blueprint.deployments[one.class_name]
        yield from self._object(templates.infrastructure.kind, None, one.infrastructure)
        yield from self._object(templates.bootstrap.kind, None, one.bootstrap)
        yield from self._object(MACHINE_DEPLOYMENT, None, one.obj)
        yield from self._health_check(None, one.health_check)

    def _deployment_updated(
        self, current: CurrentWorker[MachineDeployment], one: Worker, versions: WorkerVersions
    ) -> Iterator[Action]:
        yield from self._health_check(current.health_check, one.health_check)
        if is_deleting(current.obj) or current.obj.metadata.name in versions.pending:
            return
        templates = self.blueprint.deployments[one.class_name]
        prefix, role = f"{self.cluster.metadata.name}-{one.topology_name}-", f"deployment {one.topology_name}"
        actions, infrastructure = self._template(
            templates.infrastructure.kind,
            current.infrastructure,
            one.infrastructure,
            prefix,
            f"{role} infrastructure",
        )
        yield from actions
        actions, bootstrap = self._template(
            templates.bootstrap.kind,
            current.bootstrap,
            one.bootstrap,
            prefix,
            f"{role} bootstrap",
            may_change_kind=True,
        )
        yield from actions
        machine = ("spec", "template", "spec")
        obj = put(one.obj, infrastructure, (*machine, "infrastructureRef", "name"))
        obj = put(obj, bootstrap, (*machine, "bootstrap", "configRef", "name"))
        yield from self._object(MACHINE_DEPLOYMENT, current.obj, obj, path=(*machine, "version"))

    def _pools(self) -> Iterator[Action]:
        versions, held = self.computed.versions.pools, self.current.pools
        wanted = {one.topology_name for one in self.computed.desired.pools}
        for one in self.computed.desired.pools:
            current = held.get(one.topology_name)
            if current is None and one.topology_name not in versions.not_created:
                yield from self._pool(None, one)
            elif current is not None and current.obj.metadata.name not in versions.pending:
                yield from self._pool(current, one)
        for name, gone in held.items():
            if name not in wanted:
                yield from self._deleted(MACHINE_POOL, gone.obj)

    def _pool(self, current: CurrentWorker[MachinePool] | None, one: Worker) -> Iterator[Action]:
        if current is not None and is_deleting(current.obj):
            return
        templates = self.blueprint.pools[one.class_name]
        infrastructure = None if current is None else current.infrastructure
        bootstrap = None if current is None else current.bootstrap
        yield from self._object(templates.infrastructure.kind_made, infrastructure, one.infrastructure)
        yield from self._object(templates.bootstrap.kind_made, bootstrap, one.bootstrap)
        path = ("spec", "template", "spec", "version")
        yield from self._object(MACHINE_POOL, None if current is None else current.obj, one.obj, path=path)

    def _object(
        self, kind: AnyKind, current: Resource | None, obj: Fields, *, path: tuple[str, ...] = ()
    ) -> Iterator[Action]:
        """An object that is made, or changed in place; `path` is where its version is."""
        wanted = intent(obj)
        if current is None:
            yield _apply(kind, wanted)
            yield self._tell(CREATED, f"Created {_shown(wanted)}")
            return
        live = plain(current)
        if not isinstance(current, Unstructured):
            live = {**live, "apiVersion": kind.api_version, "kind": kind.kind}
        _check_kind(live, wanted)
        if change(live, wanted) is Change.NONE:
            return
        yield _apply(kind, wanted)
        yield self._tell(UPDATED, f"Updated {_shown(wanted)}{_version_change(live, wanted, path)}")

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
        """A template that is made, changed in place or replaced, and the name it has then."""
        before = "" if current is None else current.metadata.annotations.get(ANNOTATION_REPLACES, "")
        if before:
            template = put(template, before, _REPLACES)
        wanted = intent(template)
        if current is None:
            return [_apply(kind, wanted), self._tell(CREATED, f"Created {_shown(wanted)}")], name_of(wanted)
        if not may_change_kind:
            _check_kind(current.body, wanted)
        what = change(current.body, wanted, is_template=True)
        if what is Change.NONE:
            return [], name_of(wanted)
        if what is Change.METADATA:
            said = f"Updated {_shown(wanted)} (metadata changes)"
            return [_apply(kind, wanted), self._tell(UPDATED, said)], name_of(wanted)
        before = current.metadata.name
        name = template_name(prefix, self.cluster, role, digest(wanted.get("spec")), before)
        body = intent(put(put(template, name, ("metadata", "name")), before, _REPLACES))
        said = f'Created {_shown(body)} as a replacement for "{before}" (template rotation)'
        return [_apply(kind, body), self._tell(CREATED, said)], name

    def _health_check(self, current: MachineHealthCheck | None, wanted: Fields | None) -> Iterator[Action]:
        if wanted is not None:
            yield from self._object(MACHINE_HEALTH_CHECK, current, wanted)
        elif current is not None and not is_deleting(current):
            yield from self._deleted(MACHINE_HEALTH_CHECK, current)

    def _deleted(self, kind: AnyKind, obj: Resource) -> Iterator[Action]:
        if not is_deleting(obj):
            yield delete(kind, obj)
            yield self._tell(DELETED, f'Deleted {kind.kind} "{"/".join(obj.key)}"')

    def _tell(self, reason: str, message: str) -> Emit:
        return emit(CLUSTER, self.cluster, reason=reason, message=message)


def _apply(kind: AnyKind, body: Fields) -> Apply:
    metadata = body["metadata"]
    return Apply(kind, metadata["namespace"], metadata["name"], body)


def _shown(body: Fields) -> str:
    return f'{kind_of(body)} "{body["metadata"]["namespace"]}/{name_of(body)}"'


def _check_kind(live: Fields, wanted: Fields) -> None:
    have, want = (str(one.get("apiVersion", "")).rpartition("/")[0] for one in (live, wanted))
    about = f"{kind_of(live)}.{have}/{name_of(live)}"
    if have != want:
        raise TopologyError(
            f'metadata.apiVersion: Forbidden: apiVersion.group of {about} cannot be changed from "{have}" to "{want}"'
            " to prevent incompatible changes in the Cluster"
        )
    if kind_of(live) != kind_of(wanted):
        raise TopologyError(
            f'metadata.kind: Forbidden: apiVersion.kind of {about} cannot be changed from "{kind_of(live)}" to'
            f' "{kind_of(wanted)}" to prevent incompatible changes in the Cluster'
        )


def _version_change(live: Fields, wanted: Fields, path: tuple[str, ...]) -> str:
    before, now = find(live, path), find(wanted, path)
    if not path or before is MISSING or now is MISSING or before == now:
        return ""
    return f" with version change from {before} to {now}"
