"""Status in both versions: conditions, failures and counters change places.

The older version has its own conditions and counters beside those of the stored version, which it keeps under
`v1beta2`; the stored version keeps the older ones under `deprecated.v1beta1`.

Source: kubernetes-sigs/cluster-api: api/core/v1beta1/conversion.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ironbell.api.conversion.paths import MISSING, Body, take, value_at
from ironbell.api.conversion.rules import Restored, Target

FAILURE: Final = ("failureReason", "failureMessage")


@dataclass(frozen=True, slots=True)
class Status:
    """The whole status.

    `plain` are older fields that are optional; `counters` are older numbers; `renewed` are fields that the older
    version keeps under `v1beta2` besides the conditions. With `always`, the deprecated part is there even if empty.
    """

    plain: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    renewed: tuple[str, ...] = ()
    always: bool = False

    def up(self, body: Body, kept: Body | None) -> None:
        status = body.setdefault("status", {})
        if not isinstance(status, dict):
            return
        newer = status.pop("v1beta2", None)
        older = {name: status.pop(name) for name in ("conditions", *self.plain, *self.counters) if name in status}
        older = {name: value for name, value in older.items() if value is not None and value != 0}
        if isinstance(newer, dict):
            renewed = {name: newer.get(name) for name in ("conditions", *self.renewed)}
            status |= {name: value for name, value in renewed.items() if value is not None}
        if older or self.always:
            status["deprecated"] = {"v1beta1": older}

    def down(self, body: Body, target: Target) -> None:
        status = body.get("status")
        if not isinstance(status, dict):
            return
        newer: dict[str, Any] = {}
        for name in ("conditions", *self.renewed):
            value = status.pop(name, None)
            if value is not None:
                newer[name] = value
        older = value_at(status.pop("deprecated", None), ("v1beta1",))
        if isinstance(older, dict):
            names = ("conditions", *self.plain, *self.counters)
            status |= {name: older[name] for name in names if older.get(name) not in (None, 0)}
        if newer:
            status["v1beta2"] = newer


@dataclass(frozen=True, slots=True)
class FailureDomains:
    """Conditions by name in the older version, a list with names in the stored one."""

    def up(self, body: Body, kept: Body | None) -> None:
        domains = value_at(body, ("status", "failureDomains"))
        if isinstance(domains, dict):
            body["status"]["failureDomains"] = [_listed(name, domains[name]) for name in sorted(domains)]

    def down(self, body: Body, target: Target) -> None:
        domains = take(body, ("status", "failureDomains"))
        if domains is not MISSING and isinstance(domains, list):
            body.setdefault("status", {})["failureDomains"] = {
                domain["name"]: _by_name(domain) for domain in domains if isinstance(domain, dict) and "name" in domain
            }


def _listed(name: str, domain: Any) -> Body:
    domain = domain if isinstance(domain, dict) else {}
    entry = {"name": name, "controlPlane": bool(domain.get("controlPlane"))}
    return entry | {key: domain[key] for key in ("attributes",) if domain.get(key)}


def _by_name(domain: Body) -> Body:
    return {key: domain[key] for key in ("controlPlane", "attributes") if domain.get(key)}


def initialized(old: str, new: str) -> Restored:
    """A bool of the older status that records that something was done once."""
    return Restored(("status", old), ("status", "initialization", new))
