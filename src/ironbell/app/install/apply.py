"""Putting manifests on a cluster by server-side apply, and taking them away.

Applying again changes only what differs. Fields that somebody else has set are a conflict and are named, unless they
are to be taken over. What a server does not have (the embedded API runs no pods) is left out and told.

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
GONE_S = 120.0
LOOK_S = 0.2
ASK_AGAIN_S = 10.0
ASKED_AGAIN = "ironbell.dev/deletion-asked-again"
"""Annotation on a definition whose deletion takes long: when the API server was last reminded of it."""
_VOLATILE = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")


class InstallError(IronbellError):
    """An object cannot be applied or removed."""

    reason = "InstallFailed"
    retry = Retry.NEVER


@dataclass(frozen=True)
class Outcome:
    """What became of one object."""

    kind: str
    name: str
    namespace: str
    result: str
    """`created`, `configured`, `unchanged`, `deleted`, `kept` or `not served`; before that perhaps `waiting`, for
    one of that name which is being deleted."""


@dataclass(frozen=True)
class ApplyOptions:
    """How to apply."""

    dry_run: bool = False
    force: bool = False
    """Take over fields of others."""


async def check_pods_run(api: HttpApi) -> None:
    """
    Raises:
        InstallError: it is an API of Ironbell's own, where Deployments start nothing.
    """
    version = msgspec.json.decode(await api.raw("GET", "/version"))
    if "+ironbell" in str(version.get("gitVersion", "")):
        raise InstallError(
            "This API is the one of `ironbell up`, which runs the controllers itself and runs no pods: nothing that is "
            "installed here would start. Name a Kubernetes cluster with --kubeconfig, or apply the objects all the "
            "same with --without-pods."
        )


async def apply(api: HttpApi, objects: Iterable[Object], options: ApplyOptions) -> AsyncIterator[Outcome]:
    """Apply one after the other, and wait until definitions are served. What is being deleted is waited for and made
    anew: applied to, it would still go.

    Raises:
        InstallError: the server refuses one, or one that is being deleted stays.
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
        before = await _found(api, where, document)
        if _is_going(before):
            if options.dry_run:
                yield _outcome(document, "created")
                continue
            yield _outcome(document, "waiting")
            await _wait_gone(api, where, document["kind"], [_key(document)])
            before = None
        result = await _apply(api, where, document, before, options)
        if document["kind"] == "Namespace" and result == "created":
            missing_namespaces.add(document["metadata"]["name"])
        if document["kind"] == "CustomResourceDefinition":
            definitions.append(document["metadata"]["name"])
            if result == "created":
                defined.add(document["spec"]["group"])
        yield _outcome(document, result)
    if not options.dry_run:
        await _wait_established(api, definitions)


async def _found(api: HttpApi, where: Collection, document: Object) -> Object | None:
    try:
        return await _find(api, where, *_key(document))
    except ApiError as error:
        raise InstallError(f"{_title(document)}: {error.message}") from error


async def _apply(
    api: HttpApi, where: Collection, document: Object, before: Object | None, options: ApplyOptions
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
            f"{_title(document)}: {error.message}; give --force-conflicts to take these fields over"
        ) from error
    except ApiError as error:
        raise InstallError(f"{_title(document)}: {error.message}") from error
    if before is None:
        return "created"
    return "unchanged" if _lasting(before) == _lasting(msgspec.json.decode(answer)) else "configured"


async def _find(api: HttpApi, where: Collection, namespace: str, name: str) -> Object | None:
    try:
        found: Object = msgspec.json.decode(await api.get(where, namespace, name))
    except NotFound:
        return None
    return found


async def _wait_established(api: HttpApi, names: Sequence[str]) -> None:
    where = COLLECTIONS["CustomResourceDefinition"]
    try:
        async with asyncio.timeout(ESTABLISHED_S):
            for name in names:
                while not _is_established(await _find(api, where, "", name)):  # noqa: ASYNC110 - the server's word
                    await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise InstallError(f"CustomResourceDefinition {name} is not established after {ESTABLISHED_S:g} s") from None
    except ApiError as error:
        raise InstallError(f"CustomResourceDefinition {name}: {error.message}") from error


def _is_going(document: Object | None) -> bool:
    return bool((document or {}).get("metadata", {}).get("deletionTimestamp"))


def _is_established(document: Object | None) -> bool:
    conditions = (document or {}).get("status", {}).get("conditions") or []
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


async def remove(
    api: HttpApi, namespace: str, *, purge_definitions: bool, dry_run: bool = False
) -> AsyncIterator[Outcome]:
    """Remove all objects of ours, in the reverse order; the definitions, and with them all machines' objects, only if
    asked to. These go first, while the controllers are there to clean up behind them.

    Raises:
        InstallError: the server refuses, or objects stay because of their finalizers.
    """
    served = Served(api)
    order = [kind for kind in reversed(COLLECTIONS) if kind != "CustomResourceDefinition"]
    for kind in ["CustomResourceDefinition", *order]:
        where = COLLECTIONS[kind]
        if not await served.has(where):
            continue
        keeps = kind == "CustomResourceDefinition" and not purge_definitions
        gone = []
        for document in await _ours(api, where, namespace):
            key = _key(document)
            if kind == "Namespace" and key[1] != namespace:
                continue
            if not keeps and not dry_run:
                await _delete(api, where, kind, key)
                gone.append(key)
            yield Outcome(kind, key[1], key[0], "kept" if keeps else "deleted")
        if kind in {"CustomResourceDefinition", "Namespace"}:
            await _wait_gone(api, where, kind, gone)


async def _ours(api: HttpApi, where: Collection, namespace: str) -> list[Object]:
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


async def _wait_gone(api: HttpApi, where: Collection, kind: str, keys: Sequence[tuple[str, str]]) -> None:
    for key in keys:
        remind_s = time.monotonic() + ASK_AGAIN_S
        try:
            async with asyncio.timeout(GONE_S):
                while await _find(api, where, *key) is not None:
                    if kind == "CustomResourceDefinition" and time.monotonic() >= remind_s:
                        await _remind(api, where, key)
                        remind_s = time.monotonic() + ASK_AGAIN_S
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise InstallError(
                f"{kind} {key[1]} is still there after {GONE_S:g} s: objects in it wait for their finalizers; "
                "look at them with `kubectl get -o yaml`"
            ) from None


async def _remind(api: HttpApi, where: Collection, key: tuple[str, str]) -> None:
    """Change a definition that is being deleted: kube-apiserver forgets one whose status was written while it had to
    try again, until some change of it or five minutes bring it back.

    Source: kubernetes/apiextensions-apiserver: pkg/controller/finalizer/crd_finalizer.go, which ends well at a conflict
    with a write of its own.
    """
    body = {"metadata": {"annotations": {ASKED_AGAIN: rfc3339(SystemClock().now())}}}
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
