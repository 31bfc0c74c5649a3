"""Validation of IPAddresses and their claims."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.contract.admission_lookups import LookupResults
from ironbell.controllers.capi.admission import ipaddress

POOL = {"apiGroup": "pools.test", "kind": "Pool", "name": "p"}


def address(**spec: Any) -> dict[str, Any]:
    held = {"claimRef": {"name": "c"}, "poolRef": POOL, "address": "10.0.0.1", "prefix": 24, **spec}
    return {"metadata": {"name": "a", "namespace": "n"}, "spec": held}


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({}, []),
        ({"address": "fd00::1", "prefix": 64, "gateway": "fd00::2"}, []),
        ({"address": "10.0.0"}, ["spec.address"]),
        ({"prefix": 33}, ["spec.prefix"]),
        ({"gateway": "10.0.0.0/8"}, ["spec.gateway"]),
    ],
)
def test_addresses_are_addresses(spec: dict[str, Any], paths: list[str]) -> None:
    assert [problem.path for problem in ipaddress.validate(address(**spec), None)] == paths


def test_an_address_is_immutable() -> None:
    [problem] = ipaddress.validate(address(prefix=25), address())
    assert (problem.path, problem.kind) == ("spec.prefix", "FieldValueForbidden")
    assert ipaddress.validate_claim({"spec": {"poolRef": POOL}}, {"spec": {"poolRef": POOL}}) == []
    [problem] = ipaddress.validate_claim({"spec": {"poolRef": {}}}, {"spec": {"poolRef": POOL}})
    assert problem.path == "spec.poolRef"


@pytest.mark.parametrize(("claimed", "is_rejected"), [(POOL, False), ({**POOL, "name": "q"}, True), (None, False)])
def test_an_address_comes_from_the_pool_of_its_claim(claimed: dict[str, Any] | None, *, is_rejected: bool) -> None:
    review = ipaddress.INFORMED.review
    [lookup] = ipaddress.INFORMED.lookups_for_review(address(), None)
    objects = LookupResults({lookup: [] if claimed is None else [{"spec": {"poolRef": claimed}}]})
    assert [problem.path for problem in review(address(), None, objects).problems] == (
        ["spec.poolRef"] if is_rejected else []
    )
