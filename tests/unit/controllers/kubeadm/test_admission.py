"""What is refused when KubeadmConfigs and their templates are written, and that nothing secret is said about it."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.controllers.kubeadm.admission.kubeadmconfig import (
    ADMISSIONS,
    default_template,
    validate,
    validate_template,
)
from ironbell.controllers.kubeadm.admission.spec import spec_problems

BY_KIND = {admission.kind.kind: admission for admission in ADMISSIONS}
NOT_WITH = 'not supported when spec.format is set to: "ignition"'
ONE_SOURCE = "only one of content or contentFrom may be specified for a single file"
REFERENCE = {"secret": {"name": "s", "key": "k"}}


def problems(spec: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in validate({"spec": spec}, None)]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"files": [{"path": "/a", "content": "x"}, {"path": "/b", "contentFrom": REFERENCE}]},
        {"users": [{"name": "a", "passwd": "x", "inactive": True}]},
        {"bootCommands": ["x"], "format": "cloud-config"},
        {"format": "ignition", "ignition": {"containerLinuxConfig": {"strict": True}}},
        {"format": "ignition", "diskSetup": {"partitions": [{"device": "/a", "layout": True, "tableType": "gpt"}]}},
        {"diskSetup": {"partitions": [{"device": "/a", "diskLayout": [{"percentage": 40}, {"percentage": 60}]}]}},
    ],
)
def test_what_is_right_passes(spec: dict[str, Any]) -> None:
    assert problems(spec) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"files": [{"path": "/a", "content": "hidden", "contentFrom": REFERENCE}]},
            [f'spec.files[0]: Invalid value: "/a": {ONE_SOURCE}'],
        ),
        (
            {"files": [{"path": "/a", "contentFrom": {"secret": {"name": ""}}}]},
            [
                (
                    "spec.files[0].contentFrom.secret.name: Required value: secret file source must specify non-empty"
                    " secret name"
                ),
                (
                    "spec.files[0].contentFrom.secret.key: Required value: secret file source must specify non-empty"
                    " secret key"
                ),
            ],
        ),
        (
            {"files": [{"path": "/a"}, {"path": "/a"}]},
            ['spec.files[1].path: Invalid value: "/a": path property must be unique among all files'],
        ),
        (
            {"users": [{"name": "me", "passwd": "hidden", "passwdFrom": REFERENCE}]},
            ['spec.users[0]: Invalid value: "me": only one of passwd or passwdFrom may be specified for a single user'],
        ),
        (
            {"ignition": {"containerLinuxConfig": {"strict": True}}},
            ['spec.format: Invalid value: "": must be set to "ignition" if spec.ignition is set'],
        ),
        (
            {
                "format": "ignition",
                "users": [{"name": "a", "inactive": True}],
                "files": [{"path": "/a", "encoding": "gzip+base64"}],
                "bootCommands": [],
                "diskSetup": {
                    "partitions": [{"device": "/a", "tableType": "mbr"}],
                    "filesystems": [{"label": "a", "replaceFS": "ntfs", "partition": "any"}],
                },
            },
            [
                f"spec.users[0].inactive: Forbidden: {NOT_WITH}",
                f"spec.files[0].encoding: Forbidden: {NOT_WITH}",
                f"spec.bootCommands: Forbidden: {NOT_WITH}",
                (
                    'spec.diskSetup.partitions[0].tableType: Invalid value: "mbr": only partition type "gpt" is'
                    ' supported when spec.format is set to "ignition"'
                ),
                f"spec.diskSetup.filesystems[0].replaceFS: Forbidden: {NOT_WITH}",
                f"spec.diskSetup.filesystems[0].partition: Forbidden: {NOT_WITH}",
            ],
        ),
        (
            {"diskSetup": {"partitions": [{"device": "/a", "diskLayout": [{"percentage": 60}, {"percentage": 60}]}]}},
            [
                (
                    "spec.diskSetup.partitions[0].diskLayout: Invalid value: 120: the sum of all partition percentages"
                    " must not be greater than 100"
                )
            ],
        ),
        (
            {
                "joinConfiguration": {
                    "discovery": {
                        "file": {"kubeConfig": {"user": {"authProvider": {"name": "a"}, "exec": {"command": "b"}}}}
                    }
                }
            },
            [
                (
                    'spec.joinConfiguration.discovery.file.kubeconfig.user: Invalid value: ["authProvider","exec"]:'
                    " only one of authProvider or exec must be defined"
                )
            ],
        ),
    ],
)
def test_what_is_wrong_is_named(spec: dict[str, Any], expected: list[str]) -> None:
    assert problems(spec) == expected
    assert "hidden" not in "".join(problems(spec))


def test_a_control_plane_says_its_timeout_twice() -> None:
    spec = {"initConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 50}}}
    found = [problem.path for problem in spec_problems(spec, "spec.kubeadmConfigSpec", is_control_plane=True)]
    name = "timeouts.controlPlaneComponentHealthCheckSeconds"
    assert found == [f"spec.kubeadmConfigSpec.{kind}Configuration.{name}" for kind in ("init", "join")]
    spec["joinConfiguration"] = spec["initConfiguration"]
    assert list(spec_problems(spec, "spec.kubeadmConfigSpec", is_control_plane=True)) == []


def test_templates_are_checked_with_their_metadata() -> None:
    template = {
        "metadata": {"labels": {"a b": "c", "ok": "-"}, "annotations": {"x y": ""}},
        "spec": {"files": [{"path": "/a"}, {"path": "/a"}]},
    }
    paths = [problem.path for problem in validate_template({"spec": {"template": template}}, None)]
    assert paths == [
        "spec.template.spec.files[1].path",
        "spec.template.metadata.labels",
        "spec.template.metadata.labels",
        "spec.template.metadata.annotations",
    ]


def test_defaults_of_older_versions_are_for_comparisons_only() -> None:
    exec_ = {"discovery": {"file": {"kubeConfig": {"user": {"exec": {"command": "a"}}}}}}
    template = {"spec": {"template": {"spec": {"joinConfiguration": exec_}}}}
    assert default_template(template, None) == template
    compared = {**template, "metadata": {"annotations": {"topology.cluster.x-k8s.io/dry-run": ""}}}
    spec = default_template(compared, None)["spec"]["template"]["spec"]
    assert spec["format"] == "cloud-config"
    assert spec["initConfiguration"] == {"nodeRegistration": {"imagePullPolicy": "IfNotPresent"}}
    command = spec["joinConfiguration"]["discovery"]["file"]["kubeConfig"]["user"]["exec"]
    assert command == {"command": "a", "apiVersion": "client.authentication.k8s.io/v1"}
    assert template["spec"]["template"]["spec"]["joinConfiguration"] == exec_


def test_both_kinds_have_admission() -> None:
    assert set(BY_KIND) == {"KubeadmConfig", "KubeadmConfigTemplate"}
    config: dict[str, Any] = {"spec": {}}
    assert BY_KIND["KubeadmConfig"].default(config, None) is config
