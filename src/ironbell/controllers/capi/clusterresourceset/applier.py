"""The application of manifests in a workload cluster. Repeating it is harmless.

With the strategy ApplyOnce, objects are created, and left unchanged if they exist; with Reconcile, they are brought in
line with the manifest. An error is reported as the object and one word for the reason: an API server's message may
quote a Secret.

Source: kubernetes-sigs/cluster-api: core/reconcilers/clusterresourceset/clusterresourceset_scope.go.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from ironbell.api.addons import CLUSTER_RESOURCE_SET_BINDING
from ironbell.api.addons.clusterresourcesetbinding import ResourceBinding, ResourceSetBinding
from ironbell.api.client import AlreadyExists, Api, ListOptions, NotFound, PatchType, WriteOptions
from ironbell.api.cluster import CLUSTER
from ironbell.api.core import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, SECRET
from ironbell.api.meta import to_builtin
from ironbell.base.clock import Clock, rfc3339
from ironbell.base.errors import IronbellError
from ironbell.base.listing import first_of
from ironbell.controllers.capi.clusterresourceset.documents import documents, hash_of, values_of
from ironbell.controllers.capi.clusterresourceset.sources import RECONCILE, ContentHash
from ironbell.kube.decision import Action, Emit, Fields, Key, MergePatch
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.kinds import is_own, locate

ApiOf: TypeAlias = Callable[[ClusterKey], Awaitable[Api]]

CONTROLLER: Final = "capi-clusterresourceset-applying"
APPLY: Final = "apply-resources"
TIMEOUT_S: Final = 300.0
_PARSED: Final = 16
"""Number of resources whose parsed manifests are kept: most clusters are given the same."""
_PAGE: Final = 500
_FAILURES_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Pending:
    """A resource to apply."""

    set_name: str
    strategy: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ApplyArguments:
    """The resources to apply in a cluster, and the binding that records them."""

    cluster: ClusterKey
    binding_version: str
    bindings: bytes
    """The current entries of the binding, encoded."""
    pending: tuple[Pending, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """A resource as it was read."""

    hash: str
    objects: tuple[Fields, ...]


class Reader:
    """Reads ConfigMaps and Secrets with manifests from the management cluster, and keeps the latest parsed ones."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._parsed: OrderedDict[tuple[str, str, str, str], Content] = OrderedDict()

    async def hash(self, query: ContentHash) -> str:
        """Answer `ContentHash`.

        Raises:
            ApiError: the resource cannot be read.
            DocumentsError: the resource has no values.
        """
        body = await self._get(query.kind, (query.namespace, query.name))
        return hash_of(values_of(query.kind, body))

    async def content(self, kind: str, key: Key) -> Content:
        """Read and parse a resource.

        Raises:
            ApiError: the resource cannot be read.
            DocumentsError: the resource contains no manifests.
        """
        body = await self._get(kind, key)
        version = (kind, *key, str(body["metadata"]["resourceVersion"]))
        if version not in self._parsed:
            values = values_of(kind, body)
            objects = await asyncio.to_thread(documents, values)
            self._parsed[version] = Content(hash_of(values), tuple(objects))
            if len(self._parsed) > _PARSED:
                self._parsed.popitem(last=False)
        self._parsed.move_to_end(version)
        return self._parsed[version]

    async def _get(self, kind: str, key: Key) -> Mapping[str, Any]:
        where = SECRET.collection if kind == "Secret" else CONFIG_MAP.collection
        body: Mapping[str, Any] = msgspec.json.decode(await self._api.get(where, *key))
        return body


class Applier:
    """Performs `APPLY`."""

    def __init__(self, reader: Reader, api_of: ApiOf, clock: Clock) -> None:
        self._reader = reader
        self._api_of = api_of
        self._clock = clock

    async def __call__(self, arguments: ApplyArguments) -> Sequence[Action]:
        """Apply the resources; return the patch to the binding, and an event if some could not be applied.

        Raises:
            NotConnected: there is no connection to the cluster.
        """
        remote = Remote(await self._api_of(arguments.cluster))
        bindings = msgspec.json.decode(arguments.bindings, type=list[ResourceSetBinding])
        failed: list[str] = []
        for pending in arguments.pending:
            digest, problems = await self._apply(remote, arguments.cluster, pending)
            failed += problems
            outcome = ResourceBinding(
                name=pending.name,
                kind=pending.kind,
                hash=digest,
                last_applied_time=rfc3339(self._clock.now().replace(microsecond=0)),
                applied=not problems,
            )
            bindings = with_outcome(bindings, pending.set_name, outcome)
        actions: list[Action] = [
            MergePatch(
                CLUSTER_RESOURCE_SET_BINDING,
                *arguments.cluster.key,
                {"spec": {"bindings": to_builtin(bindings)}},
                resource_version=arguments.binding_version,
            )
        ]
        if failed:
            message = f"Could not apply {first_of(failed, _FAILURES_SHOWN, '; ')}"
            event = Emit(
                CLUSTER,
                *arguments.cluster.key,
                arguments.cluster.uid,
                reason="ResourcesNotApplied",
                message=message,
                type="Warning",
            )
            actions.append(event)
        return actions

    async def _apply(self, remote: Remote, cluster: ClusterKey, pending: Pending) -> tuple[str, list[str]]:
        subject = f"{pending.kind} {pending.name}"
        try:
            content = await self._reader.content(pending.kind, (cluster.namespace, pending.name))
        except IronbellError as error:
            return "", [f"{subject}: {error.message if not isinstance(error, NotFound) else 'not found'}"]
        return content.hash, [
            f"{subject}: {problem}" for problem in await remote.apply(content.objects, pending.strategy)
        ]


class Remote:
    """A workload cluster while resources are applied in it."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._definitions: list[Mapping[str, Any]] | None = None

    async def apply(self, objects: Iterable[Fields], strategy: str) -> list[str]:
        """Apply objects in order, past failures. Return the failures."""
        problems = []
        for obj in objects:
            try:
                await self._apply(obj, strategy)
            except IronbellError as error:
                problems.append(f"{obj['kind']} {obj['metadata']['name']}: {error.reason}")
        return problems

    async def _apply(self, obj: Fields, strategy: str) -> None:
        api_version, kind, name = str(obj["apiVersion"]), str(obj["kind"]), str(obj["metadata"]["name"])
        if not is_own(api_version, kind) and self._definitions is None:
            self._definitions = await self._defined()
        where = locate(api_version, kind, self._definitions or ())
        if kind == CUSTOM_RESOURCE_DEFINITION.kind:
            # The objects that follow may be of the kind that it defines.
            self._definitions = None
        namespace = str(obj["metadata"].get("namespace") or "default") if where.namespaced else ""
        body = msgspec.json.encode(obj)
        manager = WriteOptions(field_manager=CONTROLLER)
        if strategy != RECONCILE:
            try:
                await self._api.create(where, namespace, body, manager)
            except AlreadyExists:
                return
        else:
            forced = WriteOptions(field_manager=CONTROLLER, force=True)
            await self._api.patch(where, namespace, name, body, patch_type=PatchType.APPLY, options=forced)

    async def _defined(self) -> list[Mapping[str, Any]]:
        definitions: list[Mapping[str, Any]] = []
        token = ""
        while True:
            options = ListOptions(limit=_PAGE, continue_token=token)
            page = await self._api.list(CUSTOM_RESOURCE_DEFINITION.collection, "", options)
            definitions += [msgspec.json.decode(item) for item in page.items]
            token = page.continue_token
            if not token:
                return definitions


def with_outcome(
    bindings: Sequence[ResourceSetBinding], set_name: str, outcome: ResourceBinding
) -> list[ResourceSetBinding]:
    """The bindings with one outcome in its place, or at the end."""
    old = next((entry for entry in bindings if entry.cluster_resource_set_name == set_name), None)
    resources = list(old.resources) if old is not None else []
    places = [(r.kind, r.name) == (outcome.kind, outcome.name) for r in resources]
    updated = [outcome if is_place else r for r, is_place in zip(resources, places, strict=True)]
    updated = updated if any(places) else [*updated, outcome]
    new = ResourceSetBinding(cluster_resource_set_name=set_name, resources=updated)
    return [new if entry is old else entry for entry in bindings] if old is not None else [*bindings, new]


def encoded(bindings: Sequence[ResourceSetBinding]) -> bytes:
    """Encode bindings for `ApplyArguments`."""
    return msgspec.json.encode(list(bindings))
