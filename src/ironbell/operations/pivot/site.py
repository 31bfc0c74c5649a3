"""One of the two APIs of a pivot: its reads and writes, with errors that name the side and the object.

Temporary failures are retried for a while; every write may be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import msgspec

from ironbell.api import core
from ironbell.api.bmc import JOB
from ironbell.api.client import (
    AlreadyExists,
    Api,
    ApiError,
    Conflict,
    Expired,
    ListOptions,
    NotFound,
    PatchType,
    Preconditions,
    Selector,
    TimedOut,
    TooManyRequests,
    Unavailable,
    WriteOptions,
)
from ironbell.api.cluster.names import ANNOTATION_DELETE_FOR_MOVE
from ironbell.api.clusterctl import PROVIDER
from ironbell.api.kind import Collection
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.base.errors import IronbellError, Retry
from ironbell.operations.pivot import checks, graph
from ironbell.operations.pivot import items as kinds
from ironbell.operations.pivot.graph import Plan, Selection
from ironbell.operations.pivot.items import MANAGER, Item, Key, MovedKind, Object
from ironbell.operations.pivot.journal import JOURNAL, JOURNAL_KEY, JOURNAL_NAMESPACE, Journal

DEFINITIONS: Final = core.CUSTOM_RESOURCE_DEFINITION.collection
_OPTIONS: Final = WriteOptions(field_manager=MANAGER)
_PAGE: Final = 500
_TRIES: Final = 6
_PAUSE_S: Final = 0.2
_REMOVE_TRIES: Final = 20
_PASSING: Final = (Unavailable, TooManyRequests, TimedOut)
T = TypeVar("T")


class SiteError(IronbellError):
    """An API rejected a request, or does not answer."""

    reason, retry = "PivotInterrupted", Retry.BACKOFF


class ChangedError(IronbellError):
    """Another client changed an object in between: read it again."""

    reason, retry = "Changed", Retry.BACKOFF


@dataclass
class Site:
    """An API, and its name in messages."""

    api: Api
    side: str
    server: str = ""

    async def identity(self) -> str:
        """Identity of the API: the uid of its oldest namespace.

        Raises:
            SiteError: the namespace does not exist, or the API does not answer.
        """
        where = core.NAMESPACE.collection
        body = await self._call(lambda: self.api.get(where, "", JOURNAL_NAMESPACE), f"namespace {JOURNAL_NAMESPACE}")
        return str(msgspec.json.decode(body)["metadata"]["uid"])

    async def objects(self, where: Collection, namespace: str = "", labels: str = "") -> list[Object]:
        """All objects of a collection; none if the API does not serve it.

        Raises:
            SiteError: they cannot be listed.
        """
        objects: list[Object] = []
        token = ""
        while True:
            options = ListOptions(Selector(labels=labels), limit=_PAGE, continue_token=token)
            try:
                page = await self._call(partial(self.api.list, where, namespace, options), where.plural)
            except NotFound:
                return []
            except Expired:
                objects, token = [], ""
                continue
            objects += [msgspec.json.decode(item) for item in page.items]
            token = page.continue_token
            if not token:
                return objects

    async def items(self, kind: MovedKind, namespace: str = "", labels: str = "") -> list[Item]:
        """All objects of a kind, as items."""
        return [Item(kind, body) for body in await self.objects(kind.where, namespace, labels)]

    async def find(self, kind: MovedKind, namespace: str, name: str) -> Item | None:
        """One object; None if it does not exist."""
        try:
            body = await self._call(
                lambda: self.api.get(kind.where, namespace, name), f"{kind.name} {namespace}/{name}"
            )
        except NotFound:
            return None
        return Item(kind, msgspec.json.decode(body))

    async def create(self, kind: MovedKind, body: Object) -> Item:
        """Create an object.

        Raises:
            ChangedError: the object exists already.
            SiteError: the API rejects the object.
        """
        meta = body["metadata"]
        answer = await self._write(
            lambda: self.api.create(kind.where, meta.get("namespace", ""), msgspec.json.encode(body), _OPTIONS),
            f"{kind.name} {meta.get('namespace', '')}/{meta['name']}",
        )
        return Item(kind, msgspec.json.decode(answer))

    async def replace(self, item: Item, body: Object) -> Item:
        """Replace the content of an object by `body`; raises the errors of `create`."""
        meta = {**body["metadata"], "uid": item.uid, "resourceVersion": item.meta["resourceVersion"]}
        encoded = msgspec.json.encode({**body, "metadata": meta})
        where = item.kind.where
        answer = await self._write(
            lambda: self.api.replace(where, item.namespace, item.name, encoded, options=_OPTIONS), item.title
        )
        return Item(item.kind, msgspec.json.decode(answer))

    async def write_status(self, item: Item, status: Object) -> None:
        """Replace the status of an object."""
        encoded = msgspec.json.encode([{"op": "add", "path": "/status", "value": status}])
        await self._patch(item, encoded, PatchType.JSON, subresource="status")

    async def merge(self, item: Item, patch: Object) -> None:
        """Apply a JSON merge patch, unless it is empty."""
        if patch:
            await self._patch(item, msgspec.json.encode(patch), PatchType.MERGE)

    async def _patch(self, item: Item, body: bytes, patch_type: PatchType, subresource: str = "") -> None:
        await self._write(
            lambda: self.api.patch(
                item.kind.where,
                item.namespace,
                item.name,
                body,
                patch_type=patch_type,
                subresource=subresource,
                options=_OPTIONS,
            ),
            item.title,
        )

    async def remove(self, kind: MovedKind, namespace: str, name: str, uid: str) -> None:
        """Delete the object with this uid without any action of controllers: its finalizers are removed first, so that
        no controller ever sees it as an object to clean up.

        Raises:
            SiteError: the API rejects that, or finalizers are added again and again.
        """
        for _ in range(_REMOVE_TRIES):
            item = await self.find(kind, namespace, name)
            if item is None or item.uid != uid:
                return
            try:
                await self._strip(item)
                await self._call(
                    lambda: self.api.delete(kind.where, namespace, name, preconditions=Preconditions(uid=uid)),
                    f"{kind.name} {namespace}/{name}",
                )
            except NotFound:
                return
            except (Conflict, ChangedError):
                await asyncio.sleep(_PAUSE_S)
        raise SiteError(
            f"{kind.name} {namespace}/{name} cannot be removed from the {self.side}: finalizers are added again; stop "
            "its provider's controller there, and run the same command again"
        )

    async def _strip(self, item: Item) -> None:
        if item.meta.get("finalizers") or ANNOTATION_DELETE_FOR_MOVE not in item.annotations:
            version = item.meta["resourceVersion"]
            annotations = {ANNOTATION_DELETE_FOR_MOVE: ""}
            await self.merge(
                item, {"metadata": {"finalizers": None, "annotations": annotations, "resourceVersion": version}}
            )

    async def ensure_namespaces(self, names: Iterable[str]) -> list[str]:
        """Create the missing namespaces, and return their names."""
        created, where = [], core.NAMESPACE.collection
        existing = {obj["metadata"]["name"] for obj in await self.objects(where)}
        for name in sorted(set(names) - existing - {""}):
            body = msgspec.json.encode({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            try:
                await self._write(partial(self.api.create, where, "", body, _OPTIONS), f"namespace {name}")
            except ChangedError:
                continue
            created.append(name)
        return created

    async def journal(self) -> tuple[Journal, str] | None:
        """The record of a pivot, with its version; None if it does not exist.

        Raises:
            SiteError: the record cannot be read.
        """
        where = core.CONFIG_MAP.collection
        try:
            body = await self._call(lambda: self.api.get(where, JOURNAL_NAMESPACE, JOURNAL), "the pivot's record")
        except NotFound:
            return None
        config_map = core.CONFIG_MAP.decode(body)
        try:
            journal = msgspec.json.decode(config_map.data[JOURNAL_KEY], type=Journal)
        except (KeyError, msgspec.MsgspecError) as error:
            raise SiteError(
                f"ConfigMap {JOURNAL_NAMESPACE}/{JOURNAL} on the {self.side} is not a pivot's record that this release "
                f"understands ({error}); use the release that wrote it"
            ) from error
        return journal, config_map.metadata.resource_version

    async def write_journal(self, journal: Journal, version: str = "") -> None:
        """Create the record, or replace the one of this version.

        Raises:
            ChangedError: another run was faster.
        """
        where = core.CONFIG_MAP.collection
        meta = {"name": JOURNAL, "namespace": JOURNAL_NAMESPACE, **({"resourceVersion": version} if version else {})}
        data = {JOURNAL_KEY: msgspec.json.encode(journal).decode()}
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})

        async def write() -> bytes:
            if version:
                return await self.api.replace(where, JOURNAL_NAMESPACE, JOURNAL, body, options=_OPTIONS)
            return await self.api.create(where, JOURNAL_NAMESPACE, body, _OPTIONS)

        await self._write(write, "the pivot's record")

    async def drop_journal(self) -> None:
        """Delete the record, if it exists."""
        where = core.CONFIG_MAP.collection
        try:
            await self._call(lambda: self.api.delete(where, JOURNAL_NAMESPACE, JOURNAL), "the pivot's record")
        except NotFound:
            return

    async def _write(self, call: Callable[[], Awaitable[T]], about: str) -> T:
        try:
            return await self._call(call, about)
        except (Conflict, AlreadyExists, NotFound) as error:
            raise ChangedError(f"{about} on the {self.side}: {error.message}") from error

    async def _call(self, call: Callable[[], Awaitable[T]], about: str) -> T:
        """Call the API; errors that the caller handles pass: NotFound, Conflict, AlreadyExists, Expired."""
        for attempt in range(_TRIES):
            try:
                return await call()
            except (NotFound, Conflict, AlreadyExists, Expired):
                raise
            except _PASSING as error:
                if attempt == _TRIES - 1:
                    raise SiteError(
                        f"{about} on the {self.side}: {error.message}; run the same command again when it answers"
                    ) from error
                await asyncio.sleep(_PAUSE_S * 2**attempt)
            except ApiError as error:
                raise SiteError(
                    f"{about} on the {self.side}: {error.message}; nothing is lost: correct that and run the same "
                    "command again, or with --abort"
                ) from error
        raise AssertionError("unreachable")


class Survey:
    """Reads both APIs; definitions are read once."""

    def __init__(self, source: Site, target: Site) -> None:
        self.source, self.target = source, target
        self._definitions: dict[str, list[Object]] = {}

    async def definitions(self, site: Site) -> list[Object]:
        """The CustomResourceDefinitions of one side."""
        if site.side not in self._definitions:
            self._definitions[site.side] = await site.objects(DEFINITIONS)
        return self._definitions[site.side]

    async def plan(self, selection: Selection) -> Plan:
        """Plan what moves in the current state."""
        moved = kinds.moved_kinds(await self.definitions(self.source))
        custom = [item for kind in moved for item in await self.source.items(kind)]
        namespaces: set[str] = set(selection.namespaces) or {""}
        if "" not in namespaces:
            namespaces |= {item.namespace for item in graph.plan(custom, selection).items if item.namespace}
            namespaces |= {
                reference["namespace"] for item in custom if item.kind.name == kinds.BMC_MACHINE
                if (reference := (item.spec.get("connection") or {}).get("authSecretRef") or {}).get("namespace")
            }  # fmt: skip
        core = [
            item for kind in kinds.CORE for namespace in sorted(namespaces)
            for item in await self.source.items(kind, namespace)
        ]  # fmt: skip
        return graph.plan([*custom, *core], selection)

    async def on_target(self, plan: Plan) -> dict[Key, Item]:
        """The objects on the target with the names of those that move, and more."""
        namespaces_by_kind: dict[MovedKind, set[str]] = {}
        for item in plan.items:
            namespaces_by_kind.setdefault(item.kind, set()).add(item.namespace if item.kind in kinds.CORE else "")
        existing: dict[Key, Item] = {}
        for kind, namespaces in namespaces_by_kind.items():
            for namespace in sorted(namespaces):
                existing |= {item.key: item for item in await self.target.items(kind, namespace)}
        return existing

    async def problems(
        self, plan: Plan, on_target: Mapping[Key, Item], pivot: str, *, adopts: bool = False
    ) -> list[str]:
        """All current problems that prevent the pivot."""
        served = kinds.served_versions(await self.definitions(self.target))
        names = {
            f"{definition['spec']['names']['kind']}.{definition['spec']['group']}"
            for definition in await self.definitions(self.source)
        }

        async def busy(kind: str, objects: Callable[[], Awaitable[list[Object]]]) -> list[Object]:
            return await objects() if kind in names else []

        return [
            *checks.torn(plan),
            *checks.unserved(plan, served),
            *checks.unfinished(plan, adopts=adopts),
            *checks.strangers(plan, on_target, pivot, adopts=adopts),
            *checks.outdated(
                await self.source.objects(PROVIDER.collection), await self.target.objects(PROVIDER.collection)
            ),
            *checks.running(
                plan,
                await busy("Workflow.tinkerbell.org", lambda: self.source.objects(WORKFLOW.collection)),
                await busy("Job.bmc.tinkerbell.org", lambda: self.source.objects(JOB.collection)),
            ),
        ]
