"""Discovery shows what is served, in the order in which clients resolve names."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.apiserver.discovery import (
    aggregated,
    api_versions,
    entries,
    group,
    group_list,
    resource_list,
    version_order,
)
from ironbell.apiserver.resources import ResourceInfo, ScalePaths
from ironbell.apiserver.schema.compiled import plain_shape


def info(group_name: str, version: str, plural: str, kind: str, **more: Any) -> ResourceInfo:
    return ResourceInfo(group_name, version, plural, kind, more.pop("namespaced", True), plain_shape({}), **more)


SCALE = ScalePaths(("spec", "replicas"), ("status", "replicas"))
ENTRIES = entries(
    [
        info("tinkerbell.org", "v1alpha1", "hardware", "Hardware", custom=True, short_names=("hw",), has_status=True,
             categories=("tinkerbell",), singular="hardware"),
        info("a.example.org", "v1beta1", "things", "Thing", custom=True),
        info("a.example.org", "v1", "things", "Thing", custom=True, scale=SCALE, connects=("log",)),
        info("", "v1", "namespaces", "Namespace", namespaced=False),
        info("coordination.k8s.io", "v1", "leases", "Lease"),
    ]
)  # fmt: skip


def test_versions_are_ordered_by_stability_and_age() -> None:
    mixed = ["v1alpha1", "foo", "v1", "v2beta1", "v10", "v2", "v1beta2", "v11alpha2", "bar"]
    assert sorted(mixed, key=version_order) == [
        "v10", "v2", "v1", "v2beta1", "v1beta2", "v11alpha2", "v1alpha1", "bar", "foo",
    ]  # fmt: skip


def test_built_in_groups_come_before_custom_ones() -> None:
    names = [entry["name"] for entry in group_list(ENTRIES)["groups"]]
    assert names == [
        "authentication.k8s.io", "authorization.k8s.io", "coordination.k8s.io", "a.example.org", "tinkerbell.org",
    ]  # fmt: skip


def test_a_group_prefers_its_most_stable_version() -> None:
    result = group(ENTRIES, "a.example.org")
    assert result is not None
    assert [version["version"] for version in result["versions"]] == ["v1", "v1beta1"]
    assert result["preferredVersion"] == {"groupVersion": "a.example.org/v1", "version": "v1"}
    assert group(ENTRIES, "none.example.org") is None
    assert group(ENTRIES, "") is None


def test_resources_tell_names_verbs_and_subresources() -> None:
    result = resource_list(ENTRIES, "tinkerbell.org", "v1alpha1")
    assert result is not None
    hardware, status = result["resources"]
    assert result["groupVersion"] == "tinkerbell.org/v1alpha1"
    assert (hardware["name"], hardware["singularName"], hardware["namespaced"]) == ("hardware", "hardware", True)
    assert (hardware["shortNames"], hardware["categories"]) == (("hw",), ("tinkerbell",))
    assert "deletecollection" in hardware["verbs"]
    assert (status["name"], status["verbs"]) == ("hardware/status", ("get", "patch", "update"))
    assert resource_list(ENTRIES, "tinkerbell.org", "v9") is None


def test_scale_answers_with_the_kind_of_another_group() -> None:
    result = resource_list(ENTRIES, "a.example.org", "v1")
    assert result is not None
    scale, log = result["resources"][1:]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")
    assert (log["name"], log["kind"], log["verbs"]) == ("things/log", "Thing", ("get",))


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_discovery_holds_everything_at_once(version: str) -> None:
    core, named = (aggregated(ENTRIES, core=flag, version=version) for flag in (True, False))
    assert core["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    assert [item["metadata"]["name"] for item in core["items"]] == [""]
    things = next(item for item in named["items"] if item["metadata"]["name"] == "a.example.org")
    assert [version["version"] for version in things["versions"]] == ["v1", "v1beta1"]
    resource = things["versions"][0]["resources"][0]
    assert resource["responseKind"] == {"group": "a.example.org", "version": "v1", "kind": "Thing"}
    assert resource["scope"] == "Namespaced"
    assert [sub["subresource"] for sub in resource["subresources"]] == ["scale", "log"]
    namespace = core["items"][0]["versions"][0]["resources"][0]
    assert namespace["scope"] == "Cluster"


def test_the_core_group_is_at_its_own_place() -> None:
    assert api_versions("127.0.0.1:1")["versions"] == ["v1"]
    result = resource_list(ENTRIES, "", "v1")
    assert result is not None
    assert result["groupVersion"] == "v1"
