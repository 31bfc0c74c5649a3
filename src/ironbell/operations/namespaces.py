"""Hints at other namespaces, for users who named a namespace without the object."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from ironbell.api import core
from ironbell.api.client import Api, ApiError, ListOptions, NotFound, Selector
from ironbell.api.kind import Collection, Kind
from ironbell.base.listing import first_of
from ironbell.kube.client import Client

_SHOWN = 8
_MOST = 500
"""Maximum number of objects that are read: this is a hint, and a site may have many thousands."""


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Object(msgspec.Struct):
    metadata: _Metadata


async def elsewhere(api: Api, where: Collection, namespace: str, name: str = "") -> str:
    """A sentence with the namespaces that have objects of a kind, or an object of that name; empty if it is unknown."""
    if not where.namespaced or not namespace:
        return ""
    try:
        exists = await _exists(api, namespace)
        selector = Selector(fields=f"metadata.name={name}") if name else Selector()
        page = await api.list(where, "", ListOptions(selector, limit=_MOST))
    except ApiError:
        return ""
    listed = [msgspec.json.decode(item, type=_Object).metadata for item in page.items]
    counts = Counter(meta.namespace for meta in listed if not name or meta.name == name)
    return namespaces_hint(namespace, dict(counts), name=name, exists=exists)


async def get_or_hint(api: Api, kind: Kind[Any], namespace: str, name: str) -> Any:
    """The object with that name.

    Raises:
        NotFound: it does not exist; the message names the namespaces that have one.
    """
    try:
        return await Client(api).get(kind, namespace, name)
    except NotFound as error:
        hint = await elsewhere(api, kind.collection, namespace, name)
        raise NotFound(f"{error.message}. {hint}".removesuffix(". ")) from None


async def no_objects_message(api: Api, where: Collection, namespace: str, noun: str) -> str:
    """A message that the namespace has no such objects, with the namespaces that have some."""
    place = f' in namespace "{namespace}"' if namespace else ""
    hint = await elsewhere(api, where, namespace)
    return f"There is no {noun}{place}. {hint}".rstrip()


def namespaces_hint(namespace: str, counts: dict[str, int], *, name: str = "", exists: bool = True) -> str:
    """The other namespaces, and the option that selects them. Pure."""
    missing = "" if exists else f'Namespace "{namespace}" does not exist.'
    others = {space: count for space, count in sorted(counts.items()) if space != namespace}
    if not others:
        return missing
    if name:
        subject, verb = ("Namespace", "has") if len(others) == 1 else ("Namespaces", "have")
        hint = f"{subject} {', '.join(others)} {verb} an object of that name: use -n {next(iter(others))}."
        return f"{missing} {hint}".strip()
    shown = first_of([f"{space} ({count})" for space, count in others.items()], _SHOWN)
    return f"{missing} Namespaces that have some: {shown}. Use -n to select one, or -A for all.".strip()


async def _exists(api: Api, namespace: str) -> bool:
    try:
        await api.get(core.NAMESPACE.collection, "", namespace)
    except NotFound:
        return False
    return True
