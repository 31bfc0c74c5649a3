"""Strategies of the core kinds: defaults and validation beyond their schemas.

Source: kubernetes/kubernetes: pkg/registry/core/*/strategy.go, pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from ironbell.apiserver.fielderrors import FieldError, forbidden, invalid, required, too_long
from ironbell.apiserver.strategy import Plain

MAX_DATA_BYTES = 1 << 20
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_DATA_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_IMMUTABLE = "field is immutable when `immutable` is set"
_NEEDED_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


class NamespaceRules(Plain):
    """A Namespace is active until it is deleted; a finalizer holds it until its contents are deleted."""

    def prepare_create(self, new: dict[str, Any]) -> None:
        spec = new.setdefault("spec", {})
        finalizers = spec.setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        new["status"] = {"phase": "Active"}
        # Selectors find namespaces by this label (KEP-2161).
        new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"].get("name", "")

    def prepare_update(self, new: dict[str, Any], old: dict[str, Any]) -> None:
        new["spec"] = {**new.get("spec", {}), "finalizers": old.get("spec", {}).get("finalizers", [])}
        new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"]["name"]


class DataRules(Plain):
    """Secret and ConfigMap: keys, sizes, and data that may not change again."""

    _texts: tuple[str, ...] = ("data",)
    _encoded: tuple[str, ...] = ("binaryData",)

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        errors: list[FieldError] = []
        total = 0
        for field in (*self._texts, *self._encoded):
            for key, value in (new.get(field) or {}).items():
                if len(key) > 253 or not _DATA_KEY.fullmatch(key) or key in (".", ".."):
                    errors.append(invalid(f"{field}[{key}]", key, _DATA_KEY_TEXT))
                total += len(value) * 3 // 4 if field in self._encoded else len(value.encode())
        if total > MAX_DATA_BYTES:
            errors.append(too_long(self._texts[0] if self._texts else self._encoded[0], MAX_DATA_BYTES))
        errors += [
            invalid(f"{self._texts[0]}[{key}]", key, "duplicate of key present in binaryData")
            for key in (new.get("binaryData") or {})
            if key in (new.get("data") or {})
        ]
        if old is not None and old.get("immutable"):
            errors += self._validate_immutable(new, old)
        return errors

    def _validate_immutable(self, new: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
        errors = [
            forbidden(field, _IMMUTABLE)
            for field in (*self._texts, *self._encoded)
            if (new.get(field) or {}) != (old.get(field) or {})
        ]
        if not new.get("immutable"):
            errors.append(forbidden("immutable", _IMMUTABLE))
        return errors


class SecretRules(DataRules):
    """Secrets: plain text becomes data; the type never changes and may need keys."""

    _texts = ()
    _encoded = ("data",)

    def prepare_create(self, new: dict[str, Any]) -> None:
        self._take_strings(new)
        if not new.get("type"):
            new["type"] = "Opaque"

    def prepare_update(self, new: dict[str, Any], old: dict[str, Any]) -> None:
        self._take_strings(new)
        if not new.get("type"):
            new["type"] = old.get("type", "Opaque")

    def _take_strings(self, new: dict[str, Any]) -> None:
        for key, text in (new.pop("stringData", None) or {}).items():
            new.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        errors = super().validate(new, old)
        data = new.get("data") or {}
        errors += [required(f"data[{key}]") for key in _NEEDED_KEYS.get(new.get("type", ""), ()) if key not in data]
        if old is not None and new.get("type") != old.get("type"):
            errors.append(invalid("type", new.get("type"), "field is immutable"))
        return errors


class LeaseRules(Plain):
    """A Lease with a holder has a duration."""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        spec = new.get("spec") or {}
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        errors: list[FieldError] = []
        if duration is not None and duration <= 0:
            errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            errors.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
        return errors


class NodeRules(Plain):
    """A Node's provider ID is set once."""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        old_id = ((old or {}).get("spec") or {}).get("providerID")
        after = (new.get("spec") or {}).get("providerID")
        if old_id and after != old_id:
            return [forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')]
        return []
