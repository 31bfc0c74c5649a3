"""Validation of pools, also of their deletion, over plain data.

Source: kubernetes-sigs/cluster-api-ipam-provider-in-cluster: internal/webhooks/inclusterippool.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from ironbell.api.clusteripam import IP_ADDRESS
from ironbell.api.inclusteripam import KINDS
from ironbell.api.inclusteripam.pool import IpPoolSpec
from ironbell.base.listing import first_of
from ironbell.contract.admission import Admission, FieldProblem, invalid, unchanged
from ironbell.contract.admission_lookups import (
    ACCEPTED,
    AdmissionResponse,
    InformedAdmission,
    ListLookup,
    Lookup,
    LookupResults,
)
from ironbell.contract.system import KindAdmission
from ironbell.controllers.ipam.observed import SKIP_DELETION_CHECK
from ironbell.controllers.ipam.ranges import AddressError, network_of, number_of, parse, ranges_of, text_of
from ironbell.kube.decision import AnyKind, Fields

_NO_ADDRESS: Final = "provided address is not a valid IP, range, nor CIDR"
_SHOWN: Final = 5


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a pool."""
    del old
    spec = new.get("spec") or {}
    versions: set[int] = set()
    problems = list(_addresses(spec, "addresses", versions))
    if not spec.get("addresses"):
        problems.append(invalid("spec.addresses", spec.get("addresses"), "addresses is required"))
    if len(versions) > 1:
        problems.append(invalid("spec.addresses", spec["addresses"], "provided addresses are of mixed IP families"))
    problems += _gateway(spec, versions)
    excluded: set[int] = set()
    problems += _addresses(spec, "excludedAddresses", excluded)
    if excluded - versions and versions:
        detail = "addresses and excluded addresses are of mixed IP families"
        problems.append(invalid("spec.excludedAddresses", spec["excludedAddresses"], detail))
    return problems or list(_network(spec))


def _addresses(spec: Fields, name: str, versions: set[int]) -> Iterator[FieldProblem]:
    for text in spec.get(name) or ():
        try:
            versions.add(parse(str(text))[0])
        except AddressError:
            yield invalid(f"spec.{name}", text, _NO_ADDRESS)


def _gateway(spec: Fields, versions: set[int]) -> Iterator[FieldProblem]:
    text = str(spec.get("gateway") or "")
    if not text:
        return
    try:
        version, _ = number_of(text)
    except AddressError as error:
        yield invalid("spec.gateway", text, error.message)
        return
    if versions and versions != {version}:
        yield invalid("spec.gateway", text, "provided gateway and addresses are of mixed IP families")


def _network(spec: Fields) -> Iterator[FieldProblem]:
    """Check that all addresses are in the network of the lowest one."""
    parsed = [(text, *parse(str(text))) for text in spec["addresses"]]
    version, lowest = parsed[0][1], min(part[0] for _, _, part in parsed)
    prefix: Any = spec.get("prefix", 0)
    try:
        low, high = network_of(version, lowest, prefix)
    except AddressError as error:
        yield invalid("spec.prefix", prefix, f"provided prefix is not valid: {error.message}")
        return
    for text, _, (first, last) in parsed:
        if first < low or last > high:
            yield invalid("spec.addresses", text, "provided address belongs to a different subnet than others")


def _allocated_list(kind: AnyKind, pool: Fields) -> ListLookup:
    return ListLookup(IP_ADDRESS, str((pool.get("metadata") or {}).get("namespace") or "") if kind.namespaced else "")


def _needed_lists(kind: AnyKind, new: Fields | None, old: Fields | None) -> Sequence[Lookup]:
    """Return the list of allocated addresses if the pool changes or is deleted."""
    if old is None or (new is not None and new.get("spec") == old.get("spec")):
        return ()
    if new is None and SKIP_DELETION_CHECK in ((old.get("metadata") or {}).get("annotations") or {}):
        return ()
    return [_allocated_list(kind, old)]


def _review(kind: AnyKind, new: Fields | None, old: Fields | None, results: LookupResults) -> AdmissionResponse:
    if old is None or not _needed_lists(kind, new, old):
        return ACCEPTED
    name = (old.get("metadata") or {}).get("name")
    reference = {"apiGroup": kind.group, "kind": kind.kind, "name": name}
    allocated = [
        address["spec"]
        for address in results.all(_allocated_list(kind, old))
        if all(address["spec"]["poolRef"].get(key) == value for key, value in reference.items())
    ]
    if not allocated:
        return ACCEPTED
    if new is None:
        reason = "Pool has IPAddresses allocated. Cannot delete Pool until all IPAddresses have been removed."
        return AdmissionResponse(forbidden=f"{reason} {len(allocated)} are left: delete their IPAddressClaims first")
    lost = sorted(_lost(new.get("spec") or {}, [str(address["address"]) for address in allocated]))
    if not lost:
        return ACCEPTED
    shown = first_of(lost, _SHOWN)
    detail = f"pool addresses do not contain allocated addresses: {shown}; delete their IPAddressClaims first"
    return AdmissionResponse([invalid("spec.addresses", (new.get("spec") or {}).get("addresses"), detail)])


def _lost(spec: Fields, allocated: Sequence[str]) -> Iterator[str]:
    try:
        left = ranges_of(msgspec.convert(spec, IpPoolSpec))
    except (AddressError, msgspec.ValidationError):
        return
    for text in allocated:
        try:
            version, number = number_of(text)
        except AddressError:
            continue
        if version != left.version or number not in left:
            yield text_of(version, number)


ADMISSIONS: Final = tuple(Admission(kind, unchanged, validate) for kind in KINDS)
"""Admission by kind."""
INFORMED: Final = tuple(
    InformedAdmission(kind, partial(_review, kind), partial(_needed_lists, kind), deletions=True) for kind in KINDS
)
"""Admission that needs the allocated addresses."""
ADMISSION: Final = KindAdmission(ADMISSIONS, INFORMED)
