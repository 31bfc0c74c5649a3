"""Names, hashes, versions, owners, pause, failure domains, problems of fields."""

from __future__ import annotations

import pytest

from ironbell.api.core import CONFIG_MAP, NAMESPACE, ConfigMap, Namespace
from ironbell.api.meta import ObjectMeta, OwnerReference
from ironbell.contract import admission, owners
from ironbell.contract.clusters import failure_domains
from ironbell.contract.clusters.name_templates import ALPHABET, generated_name, suffix
from ironbell.contract.clusters.paused import is_paused, paused_condition
from ironbell.contract.clusters.versions import (
    VersionError,
    api_version_key,
    compare_builds,
    is_kubernetes_version,
    is_newer,
    parse_version,
    sort_key,
)
from ironbell.contract.hashing import fnv32a, label_value, stable_hash
from ironbell.contract.plurals import plural_of

TOO_LONG = "a" * 64


def test_fnv1a_gives_the_published_values() -> None:
    assert [fnv32a(text) for text in (b"", b"a", b"foobar")] == [0x811C9DC5, 0xE40C292C, 0xBF9CF968]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ""),
        ("md-0", "md-0"),
        ("a" * 63, "a" * 63),
        (TOO_LONG, "hash_2W8PhQ_z"),
        ("ends-in-", "hash_C0EMIA_z"),
    ],
)
def test_names_as_values_of_labels(text: str, value: str) -> None:
    assert label_value(text) == value


def test_a_stable_hash_does_not_depend_on_the_order_of_fields() -> None:
    assert stable_hash({"a": 1, "b": [{"c": 2, "d": 3}]}) == stable_hash({"b": [{"d": 3, "c": 2}], "a": 1})
    assert stable_hash({"a": 1}) != stable_hash({"a": 2})


def test_a_generated_name_follows_from_its_seed_and_fits() -> None:
    assert generated_name("md-0-", "uid", 3) == generated_name("md-0-", "uid", 3)
    assert len({generated_name("md-0-", "uid", number) for number in range(1000)}) == 1000
    assert len(generated_name("x" * 100, "uid")) == 63
    assert set(suffix("uid", length=20)) <= set(ALPHABET)
    assert suffix("a", "b") != suffix("ab")


def test_owners_are_told_by_group_kind_and_name() -> None:
    space = Namespace(metadata=ObjectMeta(name="prod", uid="u2"))
    reference = owners.owner_reference(NAMESPACE, space, controller=True)
    stale = OwnerReference(api_version="v0", kind="Namespace", name="prod", uid="u1")
    former = OwnerReference(api_version="cluster.x-k8s.io/v1beta2", kind="Machine", name="m", uid="u3", controller=True)
    held = owners.with_owner([former, stale], reference)
    assert [(owner.kind, owner.uid, owner.controller) for owner in held] == [
        ("Machine", "u3", None),
        ("Namespace", "u2", True),
    ]
    obj = ConfigMap(metadata=ObjectMeta(name="c", namespace="prod", resource_version="7", owner_references=held))
    assert owners.is_controlled_by(obj, NAMESPACE, space)
    assert owners.is_owned_by(obj, NAMESPACE, space)
    assert owners.owners_patch(CONFIG_MAP, obj, held) is None
    change = owners.owners_patch(CONFIG_MAP, obj, owners.without_owner(held, NAMESPACE, "prod"))
    assert change is not None
    assert change.resource_version == "7"
    assert [owner["kind"] for owner in change.body["metadata"]["ownerReferences"]] == ["Machine"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("v1.34.2", "1.34.2"),
        ("1.34", "1.34.0"),
        (" v1 ", "1.0.0"),
        ("v1.34.0-rc.1+build.7", "1.34.0-rc.1+build.7"),
    ],
)
def test_versions_are_read_tolerantly(text: str, said: str) -> None:
    assert str(parse_version(text)) == said


@pytest.mark.parametrize("text", ["", "v", "latest", "v1.x", "1.34-rc.1", "v1.34.0-rc..1"])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(VersionError, match=r".") as caught:
        parse_version(text)
    assert repr(text) in caught.value.message


def test_versions_in_their_order() -> None:
    ordered = ["v1.9.0", "v1.33.0-alpha.2", "v1.33.0-alpha.10", "v1.33.0-beta", "v1.33.0-rc.1", "v1.33.0", "v1.33.1"]
    assert sorted({*ordered}, key=parse_version) == ordered
    assert sorted(["v1.33.0", "latest", "v1.33.0+b.2", "v1.33.0+b.10"], key=sort_key) == [
        "latest",
        "v1.33.0",
        "v1.33.0+b.2",
        "v1.33.0+b.10",
    ]


@pytest.mark.parametrize(
    ("one", "other", "order", "newer"),
    [
        ("v1.33.0", "v1.33.0", 0, False),
        ("v1.33.0+2", "v1.33.0+10", -1, False),
        ("v1.33.0+2", "v1.33.0", 1, True),
        ("v1.33.0+1", "v1.33.0+a", -1, False),
        ("v1.33.0+abc", "v1.33.0+def", None, True),
        ("v1.33.1", "v1.33.0+9", 1, True),
    ],
)
def test_build_metadata_orders_what_is_else_equal(one: str, other: str, order: int | None, newer: bool) -> None:
    assert compare_builds(parse_version(one), parse_version(other)) == order
    assert is_newer(parse_version(one), parse_version(other)) is newer


def test_other_forms_of_versions() -> None:
    assert is_kubernetes_version("v1.34.2+k3s1")
    assert not is_kubernetes_version("1.34.2")
    assert not is_kubernetes_version("v1.34")
    ordered = ["x", "foo10", "foo1", "v11alpha2", "v1beta1", "v1beta2", "v3beta1", "v1", "v2", "v10"]
    assert sorted({*ordered}, key=api_version_key) == ordered


def test_a_machine_goes_where_the_fewest_are() -> None:
    domains = ["a", "b", "c"]
    assert failure_domains.fewest([], ["a"], [], seed="s") == ""
    assert failure_domains.fewest(domains, ["a", "b", "c"], ["a", "b"], seed="s") == "c"
    assert failure_domains.fewest(domains, ["a", "a", "b", "c", "c"], ["a", "c", "b"], seed="s") == "b"
    assert failure_domains.fewest(domains, ["gone"], ["gone"], seed="s") in domains


def test_ties_are_broken_the_same_way_for_one_seed_and_differently_for_many() -> None:
    chosen = {failure_domains.fewest(["a", "b", "c"], [], [], seed=f"uid-{number}") for number in range(30)}
    assert chosen == {"a", "b", "c"}
    assert len({failure_domains.fewest(["a", "b", "c"], [], [], seed="uid") for _ in range(5)}) == 1


def test_a_machine_is_taken_from_where_most_may_be_taken() -> None:
    assert failure_domains.most(["a", "b"], ["a", "a", "b"], ["b"], seed="s") == "b"
    assert failure_domains.most(["a", "b"], ["a", "a", "b"], ["a", "b"], seed="s") == "a"
    assert failure_domains.most(["a", "b"], ["a"], [], seed="s") == ""
    assert failure_domains.most(["a"], ["gone"], ["gone"], seed="s") == ""


def test_the_paused_condition_says_why() -> None:
    plain = ConfigMap(metadata=ObjectMeta(name="m", generation=3))
    marked = ConfigMap(metadata=ObjectMeta(name="m", annotations={"cluster.x-k8s.io/paused": ""}))
    assert not is_paused(plain)
    free = paused_condition("Machine", plain)
    assert (free.status, free.reason, free.message, free.observed_generation) == ("False", "NotPaused", "", 3)
    both = paused_condition("Machine", marked, cluster_paused=True)
    assert (both.status, both.reason) == ("True", "Paused")
    assert both.message == ("Cluster spec.paused is set to true, Machine has the cluster.x-k8s.io/paused annotation")


def test_problems_of_fields_read_as_kubernetes_has_them() -> None:
    problems = [
        admission.invalid("spec.version", "1.2", "must start with v"),
        admission.required("spec.clusterName", ""),
        admission.forbidden("spec.x", "cannot be changed"),
        admission.not_supported("spec.type", "Foo", ["A", "B"]),
        admission.duplicate("spec.list[1]", 7),
        admission.too_long("metadata.name", 63),
    ]
    assert [str(problem) for problem in problems] == [
        'spec.version: Invalid value: "1.2": must start with v',
        "spec.clusterName: Required value",
        "spec.x: Forbidden: cannot be changed",
        'spec.type: Unsupported value: "Foo": supported values: "A", "B"',
        "spec.list[1]: Duplicate value: 7",
        "metadata.name: Too long: may not be more than 63 bytes",
    ]


def test_plurals() -> None:
    kinds = ["Machine", "MachinePool", "ClusterClass", "Policy", "Gateway"]
    assert [plural_of(kind) for kind in kinds] == [
        "Machines",
        "MachinePools",
        "ClusterClasses",
        "Policies",
        "Gateways",
    ]
