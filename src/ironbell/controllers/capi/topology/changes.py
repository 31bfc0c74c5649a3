"""What is applied to an object, and whether that changes anything.

Fields are written by server-side apply, so that a field which the topology no longer has goes, and fields of others
stay. Whether a write is needed at all is decided without asking the server: an annotation holds a digest of what was
applied last. If it is the same and all of it is still there, nothing is written.

A template is not changed but replaced when its content changes. There the digest decides alone: what a server has
added to the content, or has refused to store, must not replace templates for ever.

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
"""On a template of the control plane: name of the one that it replaces, and that goes when this one is in use."""

_ENDPOINT: Final = ("spec", "controlPlaneEndpoint")
_LENGTH: Final = 16


class Change(Enum):
    """What applying an intent would do."""

    NONE = "none"
    METADATA = "metadata"
    SPEC = "spec"


def intent(obj: Fields) -> Fields:
    """What is applied for a desired object: only fields that a topology decides, and the digests of them."""
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
        # Zero values that a template was stored with are nobody's opinion: providers fill them in.
        if find(body, (*_ENDPOINT, name)) == empty:
            body = without(body, (*_ENDPOINT, name))
    return put(
        body, f"{_metadata_digest(body)}-{digest(body.get('spec'))}", ("metadata", "annotations", ANNOTATION_APPLIED)
    )


def change(live: Mapping[str, Any], wanted: Fields, *, is_template: bool = False) -> Change:
    """What applying an intent to an object would change."""
    if (kind_of(live), group_version(live)[0]) != (kind_of(wanted), group_version(wanted)[0]):
        return Change.SPEC
    before = metadata_of(live, "annotations").get(ANNOTATION_APPLIED, "").partition("-")
    now = metadata_of(wanted, "annotations")[ANNOTATION_APPLIED].partition("-")
    have, want = live.get("spec"), wanted.get("spec")
    is_same = before[2] == now[2]
    if is_template:
        is_known = bool(before[2])
        replaced = not is_same and not (covers(have, want) and (not is_known or covers(want, have)))
        if replaced:
            return Change.SPEC
    elif not is_same or not covers(have, want):
        return Change.SPEC
    if not is_same or before[0] != now[0] or not _has_metadata(live, wanted):
        return Change.METADATA
    return Change.NONE


def covers(live: Any, wanted: Any) -> bool:
    """Whether everything wanted is there; what is empty need not be there at all.

    Objects of older versions pass through conversions, which write some things in another way than they were applied:
    references name the version in use today, and durations have one form.
    """
    if isinstance(wanted, Mapping):
        if not isinstance(live, Mapping):
            return live is None and all(covers(None, value) for value in wanted.values())
        is_reference = "kind" in wanted
        return all(
            (is_reference and name == "apiVersion" and _is_same_group(live.get(name), value))
            or covers(live.get(name), value)
            for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        if not isinstance(live, list):
            return live is None and not wanted
        rest = iter(live)
        return all(any(covers(held, value) for held in rest) for value in wanted)
    if live is None:
        return wanted is None or wanted == ""
    if isinstance(wanted, str) and isinstance(live, str):
        return live == wanted or _is_same_duration(live, wanted)
    return bool(live == wanted) and isinstance(live, bool) == isinstance(wanted, bool)


def _is_same_group(live: Any, wanted: Any) -> bool:
    return isinstance(live, str) and isinstance(wanted, str) and live.rpartition("/")[0] == wanted.rpartition("/")[0]


def _is_same_duration(live: str, wanted: str) -> bool:
    try:
        return parse_duration(live) == parse_duration(wanted)
    except DurationError:
        return False


def digest(value: Any) -> str:
    """A short text that is the same for the same content. It is stored, so it never changes its form."""
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:_LENGTH]


def _metadata_digest(body: Fields) -> str:
    return digest({name: value for name, value in body["metadata"].items() if name not in ("name", "namespace")})


def _has_metadata(live: Mapping[str, Any], wanted: Fields) -> bool:
    for name in ("labels", "annotations"):
        have = metadata_of(live, name)
        if any(have.get(key) != value for key, value in metadata_of(wanted, name).items()):
            return False
    owners = find(wanted, ("metadata", "ownerReferences"))
    have_owners = find(live, ("metadata", "ownerReferences"))
    held = have_owners if isinstance(have_owners, list) else []
    return owners is MISSING or all(any(covers(one, owner) for one in held) for owner in owners)
