"""Apply manifests to a cluster by server-side apply, and remove them.

A repeated apply changes only what differs. Fields that another manager has set are a conflict and are named, unless
they are to be taken over. Kinds that a server does not have (the embedded API runs no pods) are left out and reported.

Failure modes: `InstallError` with the object and the server's reason.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from ironbell.api.client import ApiError, Conflict, ListOptions, NotFound, PatchType, Selector, WriteOptions
from ironbell.api.kind import Collection
from ironbell.app.install.options import PART_OF, Object
from ironbell.app.install.resources import COLLECTIONS, Served, collection_of
from ironbell.base.clock import SystemClock, rfc3339
from ironbell.base.errors import IronbellError, Retry
from ironbell.kube.transport.http import HttpApi

MANAGER = "ironbell"
ESTABLISHED_S = 60.0
DELETION_TIMEOUT_S = 120.0
POLL_S = 0.2
REMIND_AFTER_S = 10.0
REMINDED_AT = "ironbell.dev/deletion-asked-again"
"""Annotation on a definition whose deletion takes long: the time of the last reminder to the API server."""
_VOLATILE = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")


class InstallError(IronbellError):
    """An object cannot be applied or removed."""

    reason = "InstallFailed"
    retry = Retry.NEVER


@dataclass(frozen=True)
class Outcome:
    """The result for one object."""

    kind: str
    name: str
    namespace: str
    result: str
    """`created`, `configured`, `unchanged`, `deleted`, `kept` or `not served`; before that perhaps `waiting`, for an
    object of that name which is being deleted."""


@dataclass(frozen=True)
class ApplyOptions:
    """Options of an apply."""

    dry_run: bool = False
    force: bool = False
    """Take over fields of other managers."""


async def check_pods_run(api: HttpApi) -> None:
    """Check that the API is that of a cluster that runs pods.

    Raises:
        InstallError: it is an API of Ironbell itself, where Deployments start nothing.
    """
    version = msgspec.json.decode(await api.raw("GET", "/version"))
    if "+ironbell" in str(version.get("gitVersion", "")):
        raise InstallError(
            "This API belongs to `ironbell up`, which runs the controllers itself and runs no pods: nothing that is "
            "installed here would start. Name a Kubernetes cluster with --kubeconfig, or apply the objects anyway with "
            "--without-pods."
        )


async def apply(api: HttpApi, objects: Iterable[Object], options: ApplyOptions) -> AsyncIterator[Outcome]:
    """Apply the objects in order, and wait until definitions are served. An object that is being deleted is waited for
    and created again, because an apply would not stop its deletion.

    Raises:
        InstallError: the server rejects an object, or one that is being deleted stays.
    """
    served = Served(api)
    missing_namespaces: set[str] = set()
    definitions: list[str] = []
    defined: set[str] = set()
    for document in objects:
        where = collection_of(document)
        if where.group in defined:
            if options.dry_run:
                yield _outcome(document, "created")
                continue
            await _wait_established(api, definitions)
        if not await served.has(where):
            yield _outcome(document, "not served")
            continue
        namespace = document["metadata"].get("namespace", "")
        if options.dry_run and namespace in missing_namespaces:
            yield _outcome(document, "created")
            continue
        existing = await _find_existing(api, where, document)
        if _is_deleting(existing):
            if options.dry_run:
                yield _outcome(document, "created")
                continue
            yield _outcome(document, "waiting")
            await _wait_deleted(api, where, document["kind"], [_key(document)])
            existing = None
        result = await _apply(api, where, document, existing, options)
        if document["kind"] == "Namespace" and result == "created":
            missing_namespaces.add(document["metadata"]["name"])
        if document["kind"] == "CustomResourceDefinition":
            definitions.append(document["metadata"]["name"])
            if result == "created":
                defined.add(document["spec"]["group"])
        yield _outcome(document, result)
    if not options.dry_run:
        await _wait_established(api, definitions)


async def _find_existing(api: HttpApi, where: Collection, document: Object) -> Object | None:
    try:
        return await _find(api, where, *_key(document))
    except ApiError as error:
        raise InstallError(f"{_title(document)}: {error.message}") from error


async def _apply(
    api: HttpApi, where: Collection, document: Object, existing: Object | None, options: ApplyOptions
) -> str:
    namespace, name = _key(document)
    try:
        answer = await api.patch(
            where,
            namespace,
            name,
            msgspec.json.encode(document),
            patch_type=PatchType.APPLY,
            options=WriteOptions(field_manager=MANAGER, dry_run=options.dry_run, force=options.force),
        )
    except Conflict as error:
        raise InstallError(
            f"{_title(document)}: {error.message}; use --force-conflicts to take over these fields"
        ) from error
    except ApiError as error:
        raise InstallError(f"{_title(document)}: {error.message}") from error
    if existing is None:
        return "created"
    return "unchanged" if _lasting(existing) == _lasting(msgspec.json.decode(answer)) else "configured"


async def _find(api: HttpApi, where: Collection, namespace: str, name: str) -> Object | None:
    try:
        document: Object = msgspec.json.decode(await api.get(where, namespace, name))
    except NotFound:
        return None
    return document


async def _wait_established(api: HttpApi, names: Sequence[str]) -> None:
    where = COLLECTIONS["CustomResourceDefinition"]
    try:
        async with asyncio.timeout(ESTABLISHED_S):
            for name in names:
                while not _is_established(await _find(api, where, "", name)):  # noqa: ASYNC110 - the server sets it
                    await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise InstallError(f"CustomResourceDefinition {name} is not established after {ESTABLISHED_S:g} s") from None
    except ApiError as error:
        raise InstallError(f"CustomResourceDefinition {name}: {error.message}") from error


def _is_deleting(document: Object | None) -> bool:
    return bool((document or {}).get("metadata", {}).get("deletionTimestamp"))


def _is_established(document: Object | None) -> bool:
    conditions = (document or {}).get("status", {}).get("conditions") or []
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


async def remove(
    api: HttpApi, namespace: str, *, purge_definitions: bool, dry_run: bool = False
) -> AsyncIterator[Outcome]:
    """Remove all objects of Ironbell in the reverse order; the definitions, and with them all their objects, only on
    request. These are removed first, while the controllers still run and clean up.

    Raises:
        InstallError: the server rejects a deletion, or objects stay because of their finalizers.
    """
    served = Served(api)
    order = [kind for kind in reversed(COLLECTIONS) if kind != "CustomResourceDefinition"]
    for kind in ["CustomResourceDefinition", *order]:
        where = COLLECTIONS[kind]
        if not await served.has(where):
            continue
        keeps = kind == "CustomResourceDefinition" and not purge_definitions
        deleted_keys = []
        for document in await _labelled(api, where, namespace):
            key = _key(document)
            if kind == "Namespace" and key[1] != namespace:
                continue
            if not keeps and not dry_run:
                await _delete(api, where, kind, key)
                deleted_keys.append(key)
            yield Outcome(kind, key[1], key[0], "kept" if keeps else "deleted")
        if kind in {"CustomResourceDefinition", "Namespace"}:
            await _wait_deleted(api, where, kind, deleted_keys)


async def _labelled(api: HttpApi, where: Collection, namespace: str) -> list[Object]:
    options = ListOptions(Selector(labels=f"{PART_OF}=ironbell"))
    page = await api.list(where, namespace if where.namespaced else "", options)
    return [msgspec.json.decode(item) for item in page.items]


async def _delete(api: HttpApi, where: Collection, kind: str, key: tuple[str, str]) -> None:
    try:
        await api.delete(where, *key)
    except NotFound:
        return
    except ApiError as error:
        raise InstallError(f"{kind} {key[1]}: {error.message}") from error


async def _wait_deleted(api: HttpApi, where: Collection, kind: str, keys: Sequence[tuple[str, str]]) -> None:
    for key in keys:
        remind_s = time.monotonic() + REMIND_AFTER_S
        try:
            async with asyncio.timeout(DELETION_TIMEOUT_S):
                while await _find(api, where, *key) is not None:
                    if kind == "CustomResourceDefinition" and time.monotonic() >= remind_s:
                        await _remind(api, where, key)
                        remind_s = time.monotonic() + REMIND_AFTER_S
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise InstallError(
                f"{kind} {key[1]} still exists after {DELETION_TIMEOUT_S:g} s: its objects wait for their finalizers; "
                "check them with `kubectl get -o yaml`"
            ) from None


async def _remind(api: HttpApi, where: Collection, key: tuple[str, str]) -> None:
    """Change a definition that is being deleted: kube-apiserver forgets one whose status was written while its deletion
    was retried, until a change or five minutes bring it back.

    Source: kubernetes/apiextensions-apiserver: pkg/controller/finalizer/crd_finalizer.go, which succeeds at a conflict
    with a write of its own.
    """
    body = {"metadata": {"annotations": {REMINDED_AT: rfc3339(SystemClock().now())}}}
    options = WriteOptions(field_manager=MANAGER)
    with suppress(NotFound):
        await api.patch(where, *key, msgspec.json.encode(body), patch_type=PatchType.MERGE, options=options)


def _key(document: Object) -> tuple[str, str]:
    return document["metadata"].get("namespace", ""), document["metadata"]["name"]


def _title(document: Object) -> str:
    return f"{document['kind']} {document['metadata']['name']}"


def _outcome(document: Object, result: str) -> Outcome:
    namespace, name = _key(document)
    return Outcome(document["kind"], name, namespace, result)


def _lasting(document: Object) -> dict[str, Any]:
    metadata = {name: value for name, value in document["metadata"].items() if name not in _VOLATILE}
    return {**{name: value for name, value in document.items() if name != "status"}, "metadata": metadata}
