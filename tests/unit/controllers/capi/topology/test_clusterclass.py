"""A ClusterClass becomes ready: templates are owned, variables published, references compared with definitions."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER_CLASS
from ironbell.api.cluster.classes.clusterclass import ClusterClass
from ironbell.api.core.kinddefinition import KIND_DEFINITION
from ironbell.api.meta import to_builtin
from ironbell.contract.conditions.legacy import find_legacy, legacy_conditions
from ironbell.kube.conditions import find_condition
from ironbell.kube.testing import World, crash_check
from support.capi.topologies import CLASSES, CONFIG_TEMPLATE, NAMESPACE, PLANE_TEMPLATE, small_class, world

VARIABLE = {"name": "size", "required": True, "schema": {"openAPIV3Schema": {"type": "integer", "default": 1}}}
EXTERNAL = {"name": "theirs", "external": {"generatePatchesExtension": "patches.theirs"}}


def settled(*objects: dict[str, Any]) -> World:
    env = world(*objects)
    env.settle(CLASSES)
    assert not env.errors
    return env


def stored_class(env: World) -> ClusterClass:
    [class_] = env.list(CLUSTER_CLASS)
    return class_


def condition(env: World, name: str) -> tuple[str, str, str]:
    stored = find_condition(stored_class(env).status.conditions, name)
    assert stored is not None
    return stored.status, stored.reason, stored.message


def test_a_class_is_ready_when_its_templates_exist() -> None:
    env = settled(*small_class(variables=[VARIABLE]))
    class_ = stored_class(env)
    assert condition(env, "VariablesReady")[:2] == ("True", "VariablesReady")
    assert condition(env, "RefVersionsUpToDate")[:2] == ("True", "RefVersionsUpToDate")
    assert condition(env, "Paused")[:2] == ("False", "NotPaused")
    assert class_.status.observed_generation == class_.metadata.generation
    for name in ("VariablesReconciled", "RefVersionsUpToDate"):
        older = find_legacy(legacy_conditions(class_), name)
        assert older is not None
        assert older.status == "True"
    [variable] = to_builtin(class_.status.variables)
    assert variable == {
        "name": "size",
        "definitionsConflict": False,
        "definitions": [{"from": "inline", "required": True, "schema": VARIABLE["schema"]}],
    }
    [owner] = env.require(PLANE_TEMPLATE, NAMESPACE, "small").metadata.owner_references
    assert (owner.kind, owner.name, owner.controller) == ("ClusterClass", "small", None)


def test_it_may_be_killed_anywhere() -> None:
    crash_check(CLASSES, world(*small_class(variables=[VARIABLE])))


def test_a_missing_template_is_waited_for() -> None:
    objects = [obj for obj in small_class() if obj["kind"] != CONFIG_TEMPLATE.kind]
    env = settled(*objects)
    status, reason, message = condition(env, "RefVersionsUpToDate")
    assert (status, reason) == ("Unknown", "InternalError")
    assert "KubeadmConfigTemplate default/worker does not exist" in message
    assert stored_class(env).status.observed_generation == 0


def test_references_to_older_versions_are_reported() -> None:
    env = world(*small_class())
    definition = env.require(KIND_DEFINITION, "", f"{CONFIG_TEMPLATE.plural}.{CONFIG_TEMPLATE.group}")
    env.change(KIND_DEFINITION, definition, {"metadata": {"labels": {"cluster.x-k8s.io/v1beta2": "v1beta2_v1"}}})
    env.settle(CLASSES)
    assert condition(env, "RefVersionsUpToDate") == (
        "False",
        "RefVersionsNotUpToDate",
        (
            "The following templateRefs are not using the latest apiVersion:\n"
            "* KubeadmConfigTemplate worker: current: v1beta2, latest: v1"
        ),
    )


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"patches": [EXTERNAL]}, "spec.patches[theirs].external"),
        ({"upgrade": {"external": {"generateUpgradePlanExtension": "plan.theirs"}}}, "spec.upgrade.external"),
    ],
)
def test_the_need_for_an_extension_is_reported(spec: dict[str, Any], named: str) -> None:
    env = settled(*small_class(**spec))
    status, reason, message = condition(env, "VariablesReady")
    assert (status, reason) == ("False", "VariableDiscoveryFailed")
    assert f"runtime extensions are not supported: remove {named}" in message


def test_a_paused_class_is_left_alone() -> None:
    class_ = small_class()[-1]
    class_["metadata"]["annotations"] = {"cluster.x-k8s.io/paused": ""}
    env = settled(*small_class()[:-1], class_)
    assert condition(env, "Paused")[:2] == ("True", "Paused")
    assert find_condition(stored_class(env).status.conditions, "VariablesReady") is None
