"""What is read and written back in an older version is what it was; only zero values that mean nothing may change."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironbell.api.conversion.convert import Versions, convert
from ironbell.api.conversion.kinds import VERSIONS
from ironbell.api.crd.document import crd_document
from support.api.schemaobjects import random_object

CASES = [(known, version) for known in VERSIONS for version in known.rules]
IDS = [f"{known.kind.kind}-{version}" for known, version in CASES]
SCHEMAS = {
    (known.kind.kind, version["name"]): version["schema"]["openAPIV3Schema"]
    for known in VERSIONS
    for version in crd_document(known.kind)["spec"]["versions"]
}


def _contract_version(group: str, _kind: str) -> str:
    return f"{group}/v1beta1"


def _made(known: Versions, version: str, seed: int) -> dict[str, Any]:
    kind = known.kind
    schema = SCHEMAS[(kind.kind, version)]
    return random_object(schema, Random(seed), api_version=f"{kind.group}/{version}", kind=kind.kind)


def _meant(value: Any) -> Any:
    if isinstance(value, list):
        return [_meant(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    left = {key: _meant(entry) for key, entry in value.items()}
    return {key: entry for key, entry in left.items() if entry not in (None, "", 0, {}, [])}


def _with_one_timeout(value: Any) -> Any:
    """The older version has one limit for both ways of coming up; validation of the stored one wants them equal."""
    if isinstance(value, list):
        return [_with_one_timeout(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    left = {key: _with_one_timeout(entry) for key, entry in value.items()}
    for part in ("initConfiguration", "joinConfiguration"):
        if isinstance(left.get(part), dict) and isinstance(left[part].get("timeouts"), dict):
            left[part]["timeouts"].pop("controlPlaneComponentHealthCheckSeconds", None)
    return left


@pytest.mark.parametrize(("known", "version"), CASES, ids=IDS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=5)
def test_stored_objects_survive_the_older_version(known: Versions, version: str, seed: int) -> None:
    body = _with_one_timeout(_made(known, known.kind.version, seed))
    older = convert(body, f"{known.kind.group}/{version}", _contract_version)
    assert _meant(convert(older, known.kind.api_version, _contract_version)) == _meant(body)


@pytest.mark.parametrize(("known", "version"), CASES, ids=IDS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=5)
def test_older_objects_say_the_same_after_the_first_time(known: Versions, version: str, seed: int) -> None:
    old, new = f"{known.kind.group}/{version}", known.kind.api_version
    stored = convert(_made(known, version, seed), new, _contract_version)
    assert convert(convert(stored, old, _contract_version), new, _contract_version) == stored
