"""References that lead into another namespace."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.contract.crossing import Crossing, crossings, split

BMC, CAPT, CAPI = "bmc.tinkerbell.org", "infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io"


def found(group: str, plural: str, spec: dict[str, Any]) -> list[Crossing]:
    return crossings(group, plural, {"spec": spec}, "a")


def secret(namespace: str, name: str = "s", host: str = "h") -> dict[str, Any]:
    return {"connection": {"host": host, "authSecretRef": {"name": name, "namespace": namespace}}}


def signed(*secrets: dict[str, str]) -> dict[str, Any]:
    return {"connection": {"host": "h", "providerOptions": {"rpc": {"hmac": {"secrets": {"sha256": list(secrets)}}}}}}


REFERENCES: list[tuple[str, str, dict[str, Any], str, list[str]]] = [
    (BMC, "machines", secret("b"), "spec.connection.authSecretRef", ["get secrets s", "use secrets s"]),
    (
        BMC,
        "machines",
        signed({"name": "s"}, {"name": "s", "namespace": "b"}),
        "spec.connection.providerOptions.rpc.hmac.secrets[sha256][1]",
        ["get secrets s", "use secrets s"],
    ),
    (BMC, "tasks", secret("b"), "spec.connection.authSecretRef", ["get secrets s", "use secrets s"]),
    (
        BMC,
        "jobs",
        {"machineRef": {"name": "m", "namespace": "b"}},
        "spec.machineRef",
        ["use machines.bmc.tinkerbell.org m", "create jobs.bmc.tinkerbell.org"],
    ),
    (
        CAPT,
        "tinkerbellclusters",
        {"templateOverrideRef": {"name": "t", "namespace": "b"}},
        "spec.templateOverrideRef",
        ["get templates.tinkerbell.org t", "use templates.tinkerbell.org t"],
    ),
    (
        CAPT,
        "tinkerbellclustertemplates",
        {"template": {"spec": {"templateOverrideRef": {"name": "t", "namespace": "b"}}}},
        "spec.template.spec.templateOverrideRef",
        ["get templates.tinkerbell.org t", "use templates.tinkerbell.org t"],
    ),
    (
        CAPI,
        "clusters",
        {"topology": {"classRef": {"name": "c", "namespace": "b"}}},
        "spec.topology.classRef",
        ["get clusterclasses.cluster.x-k8s.io c"],
    ),
    (
        CAPI,
        "clusters",
        {"topology": {"class": "c", "classNamespace": "b"}},
        "spec.topology.class",
        ["get clusterclasses.cluster.x-k8s.io c"],
    ),
]


@pytest.mark.parametrize(("group", "plural", "spec", "path", "rights"), REFERENCES)
def test_what_a_reference_asks_of_its_writer(
    group: str, plural: str, spec: dict[str, Any], path: str, rights: list[str]
) -> None:
    (one,) = found(group, plural, spec)
    assert one.path == path
    assert [str(right) for right in one.any_of] == rights
    assert {right.namespace for right in one.any_of} == {"b"}


@pytest.mark.parametrize(("group", "plural", "spec", "path", "rights"), REFERENCES)
def test_ones_own_namespace_is_no_other(
    group: str, plural: str, spec: dict[str, Any], path: str, rights: list[str]
) -> None:
    assert crossings(group, plural, {"spec": spec}, "b") == []


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"connection": None},
        {"connection": {"authSecretRef": None}},
        secret(""),
        secret("b", ""),
        secret("a"),
        signed(),
    ],
)
def test_what_names_nothing_crosses_nothing(spec: dict[str, Any]) -> None:
    assert found(BMC, "machines", spec) == []


def test_a_reference_that_was_there_is_kept_and_a_task_binds_it_to_the_address() -> None:
    for plural, kept in (("machines", 1), ("tasks", 0)):
        added, known = split(found(BMC, plural, secret("b", host="evil")), found(BMC, plural, secret("b")))
        assert (len(added), len(known)) == (1 - kept, kept)
    added, known = split(found(BMC, "machines", secret("b", "x")), found(BMC, "machines", secret("b")))
    assert (len(added), len(known)) == (1, 0)
