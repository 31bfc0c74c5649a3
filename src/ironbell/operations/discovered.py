"""Objects of kinds that only the API knows, such as providers' objects, by group and kind.

Source: kubernetes/kubernetes: staging/src/k8s.io/client-go/discovery.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.client import ListOptions, NotFound, Selector
from ironbell.api.kind import Collection
from ironbell.base.errors import IronbellError, Retry
from ironbell.kube.transport.http import HttpApi

Object = dict[str, Any]


class NoSuchKindError(IronbellError):
    """The API has no such kind."""

    reason, retry = "NoSuchKind", Retry.NEVER


class Discovered:
    """Reads objects of any kind that the API has; the kinds of each group are read once."""

    def __init__(self, api: HttpApi) -> None:
        self._api = api
        self._versions: dict[str, tuple[str, ...]] = {}
        self._resources: dict[tuple[str, str], dict[str, Collection]] = {}

    async def collection(self, group: str, kind: str, version: str = "") -> Collection:
        """The collection of a kind; without a version, in the one that the API prefers, or in another.

        Raises:
            NoSuchKindError: the API does not have the kind.
        """
        if not version and group not in self._versions:
            self._versions[group] = await self._of_group(group)
        # the version that a group prefers need not have all its kinds
        for candidate in (version,) if version else self._versions[group]:
            if (group, candidate) not in self._resources:
                self._resources[group, candidate] = await self._listed(group, candidate)
            if kind in self._resources[group, candidate]:
                return self._resources[group, candidate][kind]
        where = f"{group}/{version}" if version else group
        raise NoSuchKindError(f"the API has no kind {kind} of {where}; is its provider installed?")

    async def find(self, group: str, kind: str, namespace: str, name: str) -> Object | None:
        """One object; None if the object or its kind does not exist."""
        try:
            where = await self.collection(group, kind)
            return _decoded(await self._api.get(where, namespace, name))
        except (NotFound, NoSuchKindError):
            return None

    async def labelled(self, where: Collection, namespace: str, labels: str) -> list[Object]:
        """The objects of a namespace with these labels."""
        page = await self._api.list(where, namespace, ListOptions(Selector(labels=labels)))
        return [_decoded(item) for item in page.items]

    async def _of_group(self, group: str) -> tuple[str, ...]:
        """The versions of a group, the preferred one first."""
        if not group:
            return ("v1",)
        try:
            group_info = _decoded(await self._api.raw("GET", f"/apis/{group}"))
        except NotFound:
            return ()
        preferred = str(group_info["preferredVersion"]["version"])
        others = (str(entry["version"]) for entry in group_info["versions"])
        return (preferred, *(other for other in others if other != preferred))

    async def _listed(self, group: str, version: str) -> dict[str, Collection]:
        try:
            resources = _decoded(await self._api.raw("GET", Collection(group, version, "", namespaced=False).prefix))
        except NotFound:
            return {}
        return {
            resource["kind"]: Collection(group, version, resource["name"], resource["namespaced"])
            for resource in resources["resources"]
            if "/" not in resource["name"]
        }


def _decoded(body: bytes) -> Object:
    decoded: Object = msgspec.json.decode(body)
    return decoded
