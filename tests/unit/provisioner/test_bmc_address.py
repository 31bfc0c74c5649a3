"""Where the password of a BMC may be sent, and who may say so."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.bmc.machine import MACHINE, Machine
from ironbell.provisioner.bmc_address import (
    ADDRESS,
    CONFIRMED,
    cause_and_remedy,
    normal,
    pin_of,
    problem,
    rights_to_write,
    to_record,
)

SECRET = {"authSecretRef": {"name": "idrac", "namespace": "b"}}


def document(
    host: str = "192.0.2.7", port: int | None = None, secret: Any = SECRET, **annotations: str
) -> dict[str, Any]:
    names = {"recorded": ADDRESS, "confirmed": CONFIRMED}
    metadata = {"namespace": "a", "name": "m", "annotations": {names[one]: value for one, value in annotations.items()}}
    options = {} if port is None else {"providerOptions": {"redfish": {"port": port}}}
    return {"metadata": metadata, "spec": {"connection": {"host": host, "insecureTLS": True, **secret, **options}}}


def machine(*words: Any, **more: Any) -> Machine:
    return MACHINE.convert(document(*words, **more))


@pytest.mark.parametrize(
    ("found", "recorded"),
    [
        (machine(), "192.0.2.7"),
        (machine(port=443), "192.0.2.7"),
        (machine("BMC-1.example.", 8443), "bmc-1.example:8443"),
        (machine("2001:db8::7", 8443), "[2001:db8::7]:8443"),
        (machine("[2001:db8::7]"), "2001:db8::7"),
        (machine(secret={}), ""),
        (machine(recorded="192.0.2.7"), ""),
        (machine("192.0.2.66", recorded="192.0.2.7"), ""),
        (machine("192.0.2.66", recorded="192.0.2.7", confirmed="192.0.2.66"), "192.0.2.66"),
        (machine("192.0.2.66", recorded="192.0.2.7", confirmed="192.0.2.67"), ""),
    ],
)
def test_the_first_address_is_recorded_and_a_confirmed_one_replaces_it(found: Machine, recorded: str) -> None:
    assert to_record(found) == recorded


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("192.0.2.7", None, True),
        ("192.0.2.7", 443, True),
        ("192.0.2.7", 8443, False),
        ("192.0.2.66", None, False),
        ("192.0.2.8", None, True),
        ("192.0.2.7.evil.example", None, False),
    ],
)
def test_a_password_goes_to_the_recorded_and_the_confirmed_address_alone(
    host: str, port: int | None, allowed: bool
) -> None:
    found = machine(host, port, recorded="192.0.2.7", confirmed="192.0.2.8")
    assert (problem(found) == "") is allowed
    assert (cause_and_remedy(found) == ("", "")) is allowed


def test_the_problem_names_cause_and_command() -> None:
    found = machine("192.0.2.66", recorded="192.0.2.7")
    assert problem(found) == (
        "the password of Machine a/m is used with the BMC at 192.0.2.7, and the Machine now names 192.0.2.66: the "
        "password is not sent there; if that is its BMC, a user who may read the Secret has to confirm it: `kubectl "
        "annotate machines.bmc.tinkerbell.org m -n a --overwrite ironbell.dev/bmc-address-confirmed=192.0.2.66`"
    )
    assert cause_and_remedy(found)[1].startswith("If that is its BMC, ")
    assert pin_of(machine("192.0.2.66", secret={}, recorded="192.0.2.7")) is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.7:443", "192.0.2.7"),
        (" BMC.example:8443", "bmc.example:8443"),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]:443", "2001:db8::7"),
        ("[2001:DB8::7]:8443", "[2001:db8::7]:8443"),
    ],
)
def test_addresses_are_compared_as_they_are_recorded(text: str, address: str) -> None:
    assert normal(text) == address


def rights(new: dict[str, Any], old: dict[str, Any] | None) -> dict[str, list[list[str]]]:
    return {
        annotation: [[f"{one.verb} {one.resource} {one.namespace}/{one.name}" for one in any_of] for any_of in needed]
        for annotation, needed in rights_to_write(new, old)
    }


def test_who_may_write_the_annotations() -> None:
    record, get = "use secrets b/idrac", "get secrets b/idrac"
    plain, recorded = document(), document(recorded="192.0.2.7")
    assert rights(plain, None) == rights(recorded, recorded) == {}
    assert rights(recorded, None) == rights(plain, recorded) == rights(recorded, plain) == {ADDRESS: [[record, get]]}
    confirmed = document(recorded="192.0.2.7", confirmed="192.0.2.66")
    assert rights(confirmed, recorded) == {CONFIRMED: [[get]]}
    assert rights(recorded, confirmed) == {}


def test_taking_the_secret_away_first_opens_nothing() -> None:
    before, after = document(secret={}, recorded="192.0.2.7"), document("192.0.2.66", secret={}, recorded="192.0.2.66")
    assert rights(after, before) == {ADDRESS: [["use secrets a/", "get secrets a/"]]}
    replaced = document(secret={"authSecretRef": {"name": "own"}}, confirmed="192.0.2.66")
    assert rights(replaced, document()) == {CONFIRMED: [["get secrets a/own"], ["get secrets b/idrac"]]}
