"""What is filled in and refused when the provider's objects are written."""

from typing import Any

import pytest

from ironbell.controllers.capt.admission import ADMISSIONS

BAD_TERM = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "X"}]}}
RULES = {one.kind.kind: one for one in ADMISSIONS}


def problems(kind: str, spec: dict[str, Any], old: dict[str, Any] | None = None, **metadata: Any) -> str:
    rules = RULES[kind]
    new = rules.default({"metadata": metadata, "spec": spec}, None)
    found = rules.validate(new, None if old is None else {"metadata": {}, "spec": old})
    return "; ".join(str(problem) for problem in found)


def template(**spec: Any) -> dict[str, Any]:
    return {"template": {"spec": spec}}


def preferred(weight: int) -> dict[str, Any]:
    return {"hardwareAffinity": {"preferred": [{"weight": weight, "hardwareAffinityTerm": {"labelSelector": {}}}]}}


def test_defaults_of_a_cluster() -> None:
    default = RULES["TinkerbellCluster"].default
    filled = default({"spec": {"imageLookupOSDistro": "Ubuntu"}}, None)["spec"]
    assert filled["imageLookupFormat"] == "{{.BaseRegistry}}/{{.OSDistro}}-{{.OSVersion}}:{{.KubernetesVersion}}.gz"
    assert filled["imageLookupOSVersion"] == "20.04"
    assert "imageLookupOSVersion" not in default({"spec": {"imageLookupOSDistro": "debian"}}, None)["spec"]
    own = {"imageLookupOSDistro": "ubuntu", "imageLookupOSVersion": "24.04", "imageLookupFormat": "x"}
    assert default({"spec": own}, None)["spec"] == own


@pytest.mark.parametrize(
    ("weight", "says"), [(-1, "[1,100]"), (0, "[1,100]"), (101, "[1,100]"), (1, ""), (50, ""), (100, "")]
)
def test_weights(weight: int, says: str) -> None:
    found = problems("TinkerbellMachine", preferred(weight))
    assert (says in found) if says else not found
    in_template = problems("TinkerbellMachineTemplate", template(**preferred(weight)))
    assert ("spec.template.spec.hardwareAffinity.preferred[0].weight" in in_template) == bool(says)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"bootOptions": {"bootMode": "isoboot"}}, "spec.bootOptions.isoURL: Required value"),
        ({"bootOptions": {"bootMode": "iso", "isoURL": "http://x/y.iso"}}, ""),
        ({"hardwareRequirements": {"memory": "lots"}}, "spec.hardwareRequirements.memory"),
        ({"hardwareRequirements": {"disks": {"size": "-1G"}}}, "spec.hardwareRequirements.disks.size"),
        ({"hardwareRequirements": {"memory": "64Gi", "nicSpeed": "10G"}}, ""),
        ({"imageLookupFormat": "{{.X"}, "spec.imageLookupFormat"),
        (
            {
                "hardwareAffinity": {
                    "required": [{"labelSelector": {"matchExpressions": [{"key": "a", "operator": "X"}]}}]
                }
            },
            "spec.hardwareAffinity.required[0].labelSelector",
        ),
    ],
)
def test_what_is_wrong_is_named(spec: dict[str, Any], says: str) -> None:
    found = problems("TinkerbellMachine", spec)
    assert (says in found) if says else not found


def test_what_was_filled_in_stays() -> None:
    old = {"hardwareName": "a", "providerID": "tinkerbell://d/a"}
    assert not problems("TinkerbellMachine", old, {})
    assert not problems("TinkerbellMachine", old, old)
    assert "spec.hardwareName: Forbidden" in problems("TinkerbellMachine", {**old, "hardwareName": "b"}, old)
    assert "spec.providerID: Forbidden" in problems("TinkerbellMachine", {"hardwareName": "a"}, old)


def test_templates_never_change_and_name_no_server() -> None:
    assert "cannot be set in templates" in problems("TinkerbellMachineTemplate", template(hardwareName="a"))
    old, new = template(), template(templateOverride="x")
    assert "immutable" in problems("TinkerbellMachineTemplate", new, old)
    tried = {"annotations": {"topology.cluster.x-k8s.io/dry-run": ""}}
    assert not problems("TinkerbellMachineTemplate", new, old, **tried)
    assert not problems("TinkerbellMachineTemplate", new, new)
    changed = problems(
        "TinkerbellClusterTemplate", template(imageLookupOSDistro="b"), template(imageLookupOSDistro="a")
    )
    assert "immutable" in changed
