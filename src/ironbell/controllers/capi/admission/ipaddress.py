"""Validation of IPAddresses and IPAddressClaims.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/ipaddress.go, ipaddressclaim.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.contract.admission import Admission, FieldProblem, forbidden, invalid, unchanged
from ironbell.contract.admission_lookups import (
    ACCEPTED,
    AdmissionResponse,
    InformedAdmission,
    Lookup,
    LookupResults,
    ObjectLookup,
)
from ironbell.controllers.capi.admission.checks import at
from ironbell.kube.decision import Fields

_POOL: Final = ("apiGroup", "kind", "name")


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of an IPAddress by itself."""
    return list(_immutable(new, old) if old is not None else _problems(at(new, "spec")))


def validate_claim(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of an IPAddressClaim."""
    return list(_immutable(new, old)) if old is not None else []


def _immutable(new: Fields, old: Fields) -> Iterator[FieldProblem]:
    old_spec, new_spec = at(old, "spec") or {}, at(new, "spec") or {}
    changed = sorted(name for name in old_spec.keys() | new_spec.keys() if old_spec.get(name) != new_spec.get(name))
    for name in changed:
        yield forbidden(f"spec.{name}", "field is immutable; create another object")


def _problems(spec: Any) -> Iterator[FieldProblem]:
    text, prefix, gateway = str(at(spec, "address") or ""), at(spec, "prefix"), at(spec, "gateway")
    address = _address(text)
    if address is None:
        yield invalid("spec.address", text, "not a valid IP address")
    elif isinstance(prefix, int) and prefix > address.max_prefixlen:
        yield invalid("spec.prefix", prefix, f"prefix is too large for an IPv{address.version} address")
    if gateway and _address(str(gateway)) is None:
        yield invalid("spec.gateway", gateway, "not a valid IP address")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _claim_lookup(address: Fields) -> ObjectLookup:
    namespace = str(at(address, "metadata", "namespace") or "")
    return ObjectLookup(IP_ADDRESS_CLAIM, namespace, str(at(address, "spec", "claimRef", "name") or ""))


def _lookups(new: Fields | None, old: Fields | None) -> Sequence[Lookup]:
    return [_claim_lookup(new)] if new is not None and old is None else []


def _review(new: Fields | None, old: Fields | None, objects: LookupResults) -> AdmissionResponse:
    if new is None or old is not None:
        return ACCEPTED
    claim = objects.get(_claim_lookup(new))
    pool, claimed = at(new, "spec", "poolRef"), at(claim, "spec", "poolRef")
    if claim is None or all(at(pool, name) == at(claimed, name) for name in _POOL):
        return ACCEPTED
    detail = (
        "the referenced pool is different from the pool referenced by the claim this address should fulfill:"
        f" {at(claimed, 'kind')} {at(claimed, 'name')}"
    )
    return AdmissionResponse([invalid("spec.poolRef", pool, detail)])


ADMISSION: Final = Admission(IP_ADDRESS, unchanged, validate)
CLAIM_ADMISSION: Final = Admission(IP_ADDRESS_CLAIM, unchanged, validate_claim)
INFORMED: Final = InformedAdmission(IP_ADDRESS, _review, _lookups)
