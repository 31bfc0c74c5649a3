"""The decision to write an object of a topology, and the content to write.

Fields are written by server-side apply: a field that the topology no longer has is removed, and fields of other owners
stay. The decision to write needs no request: an annotation holds a digest of the content that was applied last. If the
digest is the same and the object still has all of the content, nothing is written.

A template is not changed but replaced when its content changes. For a template the digest alone decides: content that a
server has added, or does not store, must not cause replacements for ever.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/structuredmerge (which fields are applied).
Upstream compares by a dry run.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from hashlib import sha256
from typing import Any, Final

import msgspec

from ironbell.codec.durations import DurationError, parse_duration
from ironbell.controllers.capi.topology.plain import MISSING, find, group_version, kind_of, metadata_of, put, without
from ironbell.kube.decision import Fields

ANNOTATION_APPLIED: Final = "ironbell.dev/topology-applied"
"""On every object of a topology: digests of the metadata and the spec that were applied last."""
ANNOTATION_REPLACES: Final = "ironbell.dev/topology-replaces"
"""On a template of the control plane: name of the template that it replaces, which is deleted once this template is in
use.
"""

_ENDPOINT: Final = ("spec", "controlPlaneEndpoint")
_LENGTH: Final = 16


class Change(Enum):
    """The part of an object that applying an intent would change."""

    NONE = "none"
    METADATA = "metadata"
    SPEC = "spec"


def intent(obj: Fields) -> Fields:
    """The content to apply for a desired object: only fields that a topology decides, and their digests."""
    metadata = obj["metadata"]
    kept: Fields = {
        name: metadata[name]
        for name in ("name", "namespace", "labels", "annotations", "ownerReferences")
        if metadata.get(name)
    }
    body: Fields = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": kept}
    if "spec" in obj:
        body["spec"] = obj["spec"]
    for name, empty in (("host", ""), ("port", 0)):
        # Zero values in a stored template are defaults, and infrastructure providers set these fields.
        if find(body, (*_ENDPOINT, name)) == empty:
            body = without(body, (*_ENDPOINT, name))
    return put(
        body, f"{_metadata_digest(body)}-{digest(body.get('spec'))}", ("metadata", "annotations", ANNOTATION_APPLIED)
    )


def change(live: Mapping[str, Any], desired: Fields, *, is_template: bool = False) -> Change:
    """Return the part of an object that applying an intent would change."""
    if (kind_of(live), group_version(live)[0]) != (kind_of(desired), group_version(desired)[0]):
        return Change.SPEC
    applied = metadata_of(live, "annotations").get(ANNOTATION_APPLIED, "").partition("-")
    new = metadata_of(desired, "annotations")[ANNOTATION_APPLIED].partition("-")
    live_spec, desired_spec = live.get("spec"), desired.get("spec")
    is_same = applied[2] == new[2]
    if is_template:
        is_known = bool(applied[2])
        replaced = not is_same and not (
            covers(live_spec, desired_spec) and (not is_known or covers(desired_spec, live_spec))
        )
        if replaced:
            return Change.SPEC
    elif not is_same or not covers(live_spec, desired_spec):
        return Change.SPEC
    if not is_same or applied[0] != new[0] or not _has_metadata(live, desired):
        return Change.METADATA
    return Change.NONE


def covers(live: Any, desired: Any) -> bool:
    """Return whether an object has everything that is desired; an empty value may be missing.

    Objects of older versions pass through conversions, which change the form of some values: references name the
    version in use today, and durations have one form.
    """
    if isinstance(desired, Mapping):
        if not isinstance(live, Mapping):
            return live is None and all(covers(None, value) for value in desired.values())
        is_reference = "kind" in desired
        return all(
            (is_reference and name == "apiVersion" and _is_same_group(live.get(name), value))
            or covers(live.get(name), value)
            for name, value in desired.items()
        )
    if isinstance(desired, list):
        if not isinstance(live, list):
            return live is None and not desired
        remaining = iter(live)
        return all(any(covers(element, value) for element in remaining) for value in desired)
    if live is None:
        return desired is None or desired == ""
    if isinstance(desired, str) and isinstance(live, str):
        return live == desired or _is_same_duration(live, desired)
    return bool(live == desired) and isinstance(live, bool) == isinstance(desired, bool)


def _is_same_group(live: Any, desired: Any) -> bool:
    return isinstance(live, str) and isinstance(desired, str) and live.rpartition("/")[0] == desired.rpartition("/")[0]


def _is_same_duration(live: str, desired: str) -> bool:
    try:
        return parse_duration(live) == parse_duration(desired)
    except DurationError:
        return False


def digest(value: Any) -> str:
    """A short text that is the same for the same content. It is stored, so it never changes its form."""
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:_LENGTH]


def _metadata_digest(body: Fields) -> str:
    return digest({name: value for name, value in body["metadata"].items() if name not in ("name", "namespace")})


def _has_metadata(live: Mapping[str, Any], desired: Fields) -> bool:
    for name in ("labels", "annotations"):
        live_texts = metadata_of(live, name)
        if any(live_texts.get(key) != value for key, value in metadata_of(desired, name).items()):
            return False
    owners = find(desired, ("metadata", "ownerReferences"))
    live_owners = find(live, ("metadata", "ownerReferences"))
    existing = live_owners if isinstance(live_owners, list) else []
    return owners is MISSING or all(any(covers(reference, owner) for reference in existing) for owner in owners)
