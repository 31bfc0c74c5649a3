"""Discovery: the groups, versions and resources that are served, in the old and in the aggregated form.

Both forms come from the same entries: the table of resources, and the reviews that are stored nowhere. Groups of
clients resolve an ambiguous name to the first match.

Source: kubernetes/apiserver: pkg/endpoints/discovery; kubernetes/api: apidiscovery/v2/types.go;
kubernetes/apimachinery: pkg/version/helpers.go (order of versions).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.subresources import Actions, Connects

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?$")
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_STAGE = {None: 2, "beta": 1, "alpha": 0}


class Subresource(msgspec.Struct, frozen=True):
    """One subresource of an entry, with the kind that it answers with."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


class Entry(msgspec.Struct, frozen=True):
    """One resource in one version, as discovery shows it."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    custom: bool = False
    storage_version_hash: str = ""
    """Hash of the version in which objects are stored, for comparison; empty for a resource that is not stored."""

    @property
    def shown_verbs(self) -> tuple[str, ...]:
        """The verbs in kube-apiserver's order, which for custom resources is another one."""
        if not self.custom:
            return self.verbs
        return (*(verb for verb in _CUSTOM_VERBS if verb in self.verbs),)


def prefix(group: str, version: str) -> str:
    """The URL path of a group and version, without the leading slash."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _review(group: str, kind: str, *, namespaced: bool = False) -> Entry:
    singular = kind.lower()
    return Entry(group, "v1", f"{singular}s", singular, kind, namespaced=namespaced, verbs=("create",))


REVIEWS = (
    _review("authentication.k8s.io", "SelfSubjectReview"),
    _review("authentication.k8s.io", "TokenReview"),
    _review("authorization.k8s.io", "LocalSubjectAccessReview", namespaced=True),
    _review("authorization.k8s.io", "SelfSubjectAccessReview"),
    _review("authorization.k8s.io", "SelfSubjectRulesReview"),
    _review("authorization.k8s.io", "SubjectAccessReview"),
)
"""Reviews: requests that are answered and not stored."""


def entries(
    infos: Iterable[ResourceInfo], connects: Connects | None = None, actions: Actions | None = None
) -> list[Entry]:
    """The entries of discovery, in its order; with the subresources that handlers serve, if those are given."""
    handlers, performed = connects or Connects(), actions or Actions()
    served = [*(_entry(info, handlers, performed) for info in infos), *REVIEWS]
    custom_groups = {entry.group for entry in served} - {entry.group for entry in served if not entry.custom}
    return sorted(served, key=lambda e: (e.group in custom_groups, e.group, version_order(e.version), e.plural))


def version_order(version: str) -> tuple[int, int, int, int, str]:
    """Sort key: stable before beta before alpha, newer before older, anything else last by name."""
    match = _VERSION.match(version)
    if match is None:
        return (1, 0, 0, 0, version)
    return (0, -_STAGE[match.group(2)], -int(match.group(1)), -int(match.group(3) or 0), "")


def api_versions(server_address: str) -> dict[str, Any]:
    """The response to `/api`."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(served: Sequence[Entry]) -> dict[str, Any]:
    """The response to `/apis`."""
    groups = [_group(name, list(members)) for name, members in groupby(served, key=lambda e: e.group) if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(served: Sequence[Entry], name: str) -> dict[str, Any] | None:
    """The response to `/apis/GROUP`; None if the group is not served."""
    members = [entry for entry in served if entry.group == name]
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, members)} if members and name else None


def resource_list(served: Sequence[Entry], group_name: str, version: str) -> dict[str, Any] | None:
    """The response to `/api/VERSION` and `/apis/GROUP/VERSION`; None if it is not served."""
    members = [entry for entry in served if (entry.group, entry.version) == (group_name, version)]
    if not members:
        return None
    resources = [resource for entry in members for resource in _resources(entry)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": _group_version(group_name, version),
        "resources": resources,
    }


def aggregated(served: Sequence[Entry], *, core: bool, version: str) -> dict[str, Any]:
    """`APIGroupDiscoveryList` in `version` (`v2` or `v2beta1`): of `/api` if `core`, else of `/apis`."""
    items = [
        {"metadata": {"name": name, "creationTimestamp": None}, "versions": _aggregated_versions(list(members))}
        for name, members in groupby(served, key=lambda e: e.group)
        if (name == "") is core
    ]
    api_version = f"apidiscovery.k8s.io/{version}"
    return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}


def _entry(info: ResourceInfo, connects: Connects, actions: Actions) -> Entry:
    names = dict.fromkeys([*info.subresources, *connects.subresources(info.group, info.plural)])
    return Entry(
        info.group,
        info.version,
        info.plural,
        info.singular or info.kind.lower(),
        info.kind,
        info.namespaced,
        verbs=info.verbs,
        short_names=info.short_names,
        categories=info.categories,
        subresources=(
            *(_subresource(info, name) for name in names),
            *(
                Subresource(name, action.group, action.version, action.kind, ("create",))
                for name, action in actions.of(info.group, info.plural).items()
            ),
        ),
        custom=info.custom,
        storage_version_hash=_storage_version_hash(info),
    )


def _storage_version_hash(info: ResourceInfo) -> str:
    """Source: kubernetes/apiserver: pkg/endpoints/discovery/storageversionhash.go."""
    group = info.group if info.storage_group is None else info.storage_group
    version = info.storage_version or info.version
    digest = hashlib.sha256(f"{group}/{version}/{info.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _subresource(info: ResourceInfo, name: str) -> Subresource:
    match name:
        case "scale":
            return Subresource(name, "autoscaling", "v1", "Scale", ("get", "patch", "update"))
        case "status":
            return Subresource(name, info.group, info.version, info.kind, ("get", "patch", "update"))
        case "finalize":
            return Subresource(name, info.group, info.version, info.kind, ("update",))
    return Subresource(name, info.group, info.version, info.kind, ("get",))


def _group_version(group_name: str, version: str) -> str:
    return f"{group_name}/{version}" if group_name else version


def _group(name: str, members: Sequence[Entry]) -> dict[str, Any]:
    versions = [
        {"groupVersion": _group_version(name, version), "version": version}
        for version in dict.fromkeys(entry.version for entry in members)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resources(entry: Entry) -> list[dict[str, Any]]:
    resource: dict[str, Any] = {
        "name": entry.plural,
        "singularName": entry.singular,
        "namespaced": entry.namespaced,
        "kind": entry.kind,
        "verbs": entry.shown_verbs,
    }
    resource |= _names(entry)
    if entry.storage_version_hash:
        resource["storageVersionHash"] = entry.storage_version_hash
    return [resource, *(_subresource_entry(entry, sub) for sub in entry.subresources)]


def _names(entry: Entry) -> dict[str, Any]:
    names = {"shortNames": entry.short_names, "categories": entry.categories}
    return {key: value for key, value in names.items() if value}


def _subresource_entry(entry: Entry, sub: Subresource) -> dict[str, Any]:
    resource: dict[str, Any] = {
        "name": f"{entry.plural}/{sub.name}",
        "singularName": "",
        "namespaced": entry.namespaced,
        "kind": sub.kind,
        "verbs": sub.verbs,
    }
    if (sub.group, sub.version) != (entry.group, entry.version):
        resource |= {"group": sub.group, "version": sub.version}
    return resource


def _aggregated_versions(members: Sequence[Entry]) -> list[dict[str, Any]]:
    return [
        {"version": version, "freshness": "Current", "resources": [_aggregated_resource(entry) for entry in same]}
        for version, same in groupby(members, key=lambda e: e.version)
    ]


def _aggregated_resource(entry: Entry) -> dict[str, Any]:
    resource: dict[str, Any] = {
        "resource": entry.plural,
        "responseKind": {"group": entry.group, "version": entry.version, "kind": entry.kind},
        "scope": "Namespaced" if entry.namespaced else "Cluster",
        "singularResource": entry.singular,
        "verbs": entry.shown_verbs,
    }
    resource |= _names(entry)
    if entry.subresources:
        resource["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {"group": sub.group, "version": sub.version, "kind": sub.kind},
                "verbs": sub.verbs,
            }
            for sub in entry.subresources
        ]
    return resource
