from typing import Any

import msgspec
import pytest

from ironbell.api.cluster.names import ANNOTATION_CONVERSION_DATA
from ironbell.api.conversion.convert import convert
from ironbell.api.conversion.kinds import VERSIONS
from ironbell.api.conversion.paths import ConversionError
from ironbell.api.conversion.rules import MOST_SECONDS, from_seconds, to_seconds
from ironbell.api.crd.older_versions import older_versions
from ironbell.app.registry import KINDS
from ironbell.app.systems import SYSTEMS, converted_in

OLD, NEW = "cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"


CONVERTED = converted_in(SYSTEMS)


def _contract_version(group: str, kind: str) -> str:
    if kind == "Unknown":
        raise ConversionError(f"failed to convert object: no contract of {kind} in {group}")
    return f"{group}/v1alpha7"


def _machine(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": OLD, "kind": "Machine", "metadata": {"name": "m", "namespace": "n"}, "spec": spec}


def test_references_lose_version_and_namespace_and_get_them_back_from_the_contract() -> None:
    old = _machine(
        clusterName="c",
        version="v1.36.0",
        nodeDrainTimeout="1m30.9s",
        bootstrap={"configRef": {"apiVersion": "bootstrap.test/v1beta1", "kind": "Config", "name": "b", "uid": "u"}},
        infrastructureRef={"apiVersion": "infra.test/v1beta1", "kind": "Host", "name": "h", "namespace": "n"},
    )
    new = convert(old, NEW, _contract_version)
    assert new["spec"] == {
        "clusterName": "c",
        "version": "v1.36.0",
        "deletion": {"nodeDrainTimeoutSeconds": 90},
        "bootstrap": {"configRef": {"apiGroup": "bootstrap.test", "kind": "Config", "name": "b"}},
        "infrastructureRef": {"apiGroup": "infra.test", "kind": "Host", "name": "h"},
    }
    back = convert(new, OLD, _contract_version)
    assert back["spec"]["nodeDrainTimeout"] == "1m30s"
    assert back["spec"]["infrastructureRef"] == {
        "apiVersion": "infra.test/v1alpha7",
        "kind": "Host",
        "name": "h",
        "namespace": "n",
    }
    assert old["spec"]["nodeDrainTimeout"] == "1m30.9s", "the object that was given is left alone"


def test_what_the_older_version_cannot_say_is_kept_in_the_annotation() -> None:
    new = {
        "apiVersion": NEW,
        "kind": "Machine",
        "metadata": {"name": "m", "namespace": "n", "annotations": {"mine": "yes"}},
        "spec": {"clusterName": "c", "minReadySeconds": 5},
        "status": {"phase": "Updating", "initialization": {"infrastructureProvisioned": False}},
    }
    old = convert(new, OLD, _contract_version)
    assert "minReadySeconds" not in old["spec"]
    assert old["status"]["phase"] == "Running"
    assert old["metadata"]["annotations"]["mine"] == "yes"
    assert "metadata" not in msgspec.json.decode(old["metadata"]["annotations"][ANNOTATION_CONVERSION_DATA])
    old["spec"]["version"] = "v1.36.1"
    back = convert(old, NEW, _contract_version)
    assert back["spec"] == {"clusterName": "c", "minReadySeconds": 5, "version": "v1.36.1"}
    assert back["status"] == new["status"]
    assert back["metadata"] == new["metadata"]


def test_conditions_and_counters_change_places() -> None:
    legacy = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    newer = [{"type": "Available", "status": "True", "reason": "Available", "message": ""}]
    old = {
        "apiVersion": OLD,
        "kind": "MachineDeployment",
        "metadata": {"name": "d"},
        "status": {
            "conditions": legacy,
            "replicas": 3,
            "readyReplicas": 2,
            "updatedReplicas": 1,
            "v1beta2": {"conditions": newer, "readyReplicas": 1, "upToDateReplicas": 3},
        },
    }
    assert convert(old, NEW, _contract_version)["status"] == {
        "conditions": newer,
        "replicas": 3,
        "readyReplicas": 1,
        "upToDateReplicas": 3,
        "deprecated": {"v1beta1": {"conditions": legacy, "readyReplicas": 2, "updatedReplicas": 1}},
    }


def test_a_client_of_the_older_version_may_write_back_what_it_read() -> None:
    new = {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmConfig",
        "metadata": {"name": "k"},
        "spec": {"diskSetup": {"partitions": [{"device": "/dev/sda", "diskLayout": [{"percentage": 100}]}]}},
    }
    old = convert(new, "bootstrap.cluster.x-k8s.io/v1beta1", _contract_version)
    partition = old["spec"]["diskSetup"]["partitions"][0]
    assert partition["layout"] is False, "the older version requires it"
    assert convert(old, "bootstrap.cluster.x-k8s.io/v1beta2", _contract_version)["spec"] == new["spec"]


def test_kubeadms_time_limits_change_places() -> None:
    old = {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
        "kind": "KubeadmConfig",
        "metadata": {"name": "k"},
        "spec": {
            "clusterConfiguration": {"apiServer": {"timeoutForControlPlane": "20m", "extraArgs": {"v": "2", "a": "b"}}},
            "joinConfiguration": {"discovery": {"timeout": "5m"}},
        },
    }
    new = convert(old, "bootstrap.cluster.x-k8s.io/v1beta2", _contract_version)
    assert new["spec"] == {
        "clusterConfiguration": {
            "apiServer": {"extraArgs": [{"name": "a", "value": "b"}, {"name": "v", "value": "2"}]}
        },
        "initConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 1200}},
        "joinConfiguration": {
            "timeouts": {"controlPlaneComponentHealthCheckSeconds": 1200, "tlsBootstrapSeconds": 300}
        },
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"apiVersion": "other.test/v1"}, "Machine of other.test/v1 cannot be converted"),
        ({"apiVersion": "cluster.x-k8s.io/v1alpha3"}, "cannot be converted"),
        ({"kind": "Nothing"}, "Nothing of cluster.x-k8s.io/v1beta1"),
        ({"spec": {"nodeDrainTimeout": "soon"}}, 'time: invalid duration "soon"'),
        (
            {"spec": {"infrastructureRef": {"apiVersion": "a/b/c", "kind": "K"}}},
            "unexpected GroupVersion string: a/b/c",
        ),
        ({"metadata": {"annotations": {ANNOTATION_CONVERSION_DATA: "[]"}}}, "holds no object"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        convert(_machine() | change, NEW, _contract_version)


def test_a_reference_to_a_kind_without_contract_is_refused() -> None:
    new = {**_machine(infrastructureRef={"apiGroup": "g", "kind": "Unknown", "name": "x"}), "apiVersion": NEW}
    with pytest.raises(ConversionError, match="no contract of Unknown in g"):
        convert(new, OLD, _contract_version)


@pytest.mark.parametrize("body", [{}, {"spec": None}, {"spec": [], "status": "x"}, {"spec": {"bootstrap": 3}}])
def test_shapes_that_validation_refuses_later_do_no_harm(body: dict[str, Any]) -> None:
    for old, new in ((OLD, NEW), (NEW, OLD)):
        assert convert({"apiVersion": old, "kind": "Machine", **body}, new, _contract_version)["apiVersion"] == new


def test_durations_are_cut_to_seconds_and_capped() -> None:
    assert [to_seconds(text) for text in ("0s", "1.9s", "1h1m1s", "-1.5s")] == [0, 1, 3661, -1]
    assert to_seconds("876000h") == MOST_SECONDS
    assert [from_seconds(value) for value in (0, 59, 60, 3600, 90061, -61)] == [
        "0s",
        "59s",
        "1m0s",
        "1h0m0s",
        "25h1m1s",
        "-1m1s",
    ]


def test_all_kinds_with_older_versions_are_converted() -> None:
    assert {f"{known.kind.plural}.{known.kind.group}" for known in VERSIONS} == CONVERTED
    assert {f"{kind.plural}.{kind.group}" for kind in KINDS if kind.older_versions} == CONVERTED
    for known in VERSIONS:
        older = {version["name"] for version in older_versions(known.kind)}
        assert older == set(known.rules)
