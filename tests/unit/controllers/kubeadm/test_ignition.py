"""Ignition: what a host gets, where upstream's is defective, and what users add.

Everything else is compared with upstream's in tests/compat/kubeadm.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
import pytest

from ironbell.controllers.kubeadm.config.ignition import IgnitionError
from ironbell.controllers.kubeadm.config.ignition.host import mount_unit
from ironbell.controllers.kubeadm.config.rendering.kubeadm import ClusterFacts
from ironbell.controllers.kubeadm.config.rendering.render import Inputs, bootstrap_data
from ironbell.controllers.kubeadm.config.rendering.userdata import Role, WriteFile

DISCOVERY = {
    "discovery": {"bootstrapToken": {"token": "a1b2c3.0123456789abcdef", "apiServerEndpoint": "192.0.2.10:6443"}}
}


def made(*files: WriteFile, **spec: Any) -> Any:
    whole = {"format": "ignition", "joinConfiguration": DISCOVERY, **spec}
    inputs = Inputs(Role.WORKER, whole, (1, 36, 2), ClusterFacts("one"), files=files, users=spec.get("users", []))
    return msgspec.json.decode(bootstrap_data(inputs))


def contents(config: Any, path: str) -> str:
    found = [file for file in config["storage"]["files"] if file["path"] == path]
    assert len(found) == 1
    return unquote_to_bytes(found[0]["contents"]["source"].removeprefix("data:,")).decode()


def units(config: Any) -> dict[str, Any]:
    return {unit["name"]: unit for unit in config["systemd"]["units"]}


def added(text: str, *, strict: bool = False) -> Any:
    return made(ignition={"containerLinuxConfig": {"additionalConfig": text, "strict": strict}})


def test_kubeadm_runs_once_between_the_users_commands() -> None:
    config = made(preKubeadmCommands=["echo before", "echo again"], postKubeadmCommands=["echo after"], verbosity=5)
    assert contents(config, "/etc/kubeadm.sh") == (
        "#!/bin/bash\nset -e\n\necho before\necho again\n\n"
        "kubeadm join --config /etc/kubeadm.yml --v 5\n"
        "mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete\n"
        "mv /etc/kubeadm.yml /tmp/\n\necho after\n"
    )
    assert contents(config, "/etc/kubeadm.yml").startswith("---\napiVersion: kubeadm.k8s.io/v1beta4\n")
    unit = units(config)["kubeadm.service"]
    assert unit["enabled"]
    assert "ConditionPathExists=/etc/kubeadm.yml\n" in unit["contents"]


def test_a_switch_that_is_off_is_off() -> None:
    """Upstream's template asks whether it is set: `ntp.enabled: false` starts ntpd, `layout: false` partitions."""
    disks = {"partitions": [{"device": "/dev/sda", "layout": False}]}
    config = made(ntp={"enabled": False, "servers": ["192.0.2.1"]}, diskSetup=disks)
    assert "ntpd.service" not in units(config)
    assert config["storage"]["disks"] == [{"device": "/dev/sda"}]


def test_overwrite_of_a_filesystem_may_be_left_out() -> None:
    """Upstream's template then writes `<nil>`, which is no boolean, and fails."""
    config = made(diskSetup={"filesystems": [{"device": "/dev/sda", "filesystem": "ext4", "label": "data"}]})
    assert "wipeFilesystem" not in config["storage"]["filesystems"][0]["mount"]


@pytest.mark.parametrize(("permissions", "mode"), [("0644", 0o644), ("644", 0o644), ("0600", 0o600), ("", 0o644)])
def test_permissions_are_octal_with_and_without_a_zero(permissions: str, mode: int) -> None:
    """Upstream reads 644 as a decimal number, and fails where there are none."""
    config = made(WriteFile("/etc/a", "x", permissions=permissions))
    assert next(file["mode"] for file in config["storage"]["files"] if file["path"] == "/etc/a") == mode


@pytest.mark.parametrize(
    ("path", "unit"),
    [("/data", "data.mount"), ("/var/lib/etcd/", "var-lib-etcd.mount"), ("/srv/my-data", r"srv-my\x2ddata.mount")],
)
def test_units_of_mounts_are_named_as_systemd_wants_them(path: str, unit: str) -> None:
    """Upstream leaves dashes as they are; systemd then refuses the unit."""
    assert mount_unit(path) == unit


def test_mounts_name_filesystems_by_their_label() -> None:
    disks = {"filesystems": [{"device": "/dev/sdb1", "filesystem": "ext4", "label": "data"}]}
    unit = units(made(diskSetup=disks, mounts=[["data", "/srv", "ro", "noatime"]]))["srv.mount"]
    assert "What=/dev/sdb1\nWhere=/srv\nOptions=ro,noatime\n" in unit["contents"]
    with pytest.raises(IgnitionError, match=r"spec.mounts\[0\]: no filesystem of spec.diskSetup has the label 'other'"):
        made(diskSetup=disks, mounts=[["other", "/srv"]])
    with pytest.raises(IgnitionError, match=r"spec.mounts\[0\] needs a filesystem's label and a path"):
        made(diskSetup=disks, mounts=[["data"]])


def test_base_64_may_hold_any_bytes() -> None:
    source = made(WriteFile("/etc/a", "/wD+", encoding="base64"))["storage"]["files"][0]["contents"]["source"]
    assert unquote_to_bytes(source.removeprefix("data:,")) == b"\xff\x00\xfe"
    with pytest.raises(IgnitionError, match=r"spec.files\[0\].content is not valid base64"):
        made(WriteFile("/etc/a", "a", encoding="base64"))


def test_what_a_user_adds_follows() -> None:
    config = added("systemd: {units: [{name: kubeadm.service, dropins: [{name: a.conf, contents: x}]}]}")
    assert [unit["name"] for unit in config["systemd"]["units"]] == ["kubeadm.service", "kubeadm.service"]
    assert config["ignition"]["version"] == "2.3.0"


def test_unknown_fields_are_left_out_unless_it_is_strict() -> None:
    text = "storage: {files: [{path: /a, mod: 0600}]}"
    assert added(text)["storage"]["files"][-1]["path"] == "/a"
    with pytest.raises(IgnitionError, match=r"has unknown fields: .*additionalConfig.storage.files\[0\].mod; correct"):
        added(text, strict=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid YAML"),
        ("[]", "additionalConfig is not an object"),
        ("storage: {files: {}}", "storage.files is not a list"),
        ("storage: {files: [{path: [a]}]}", r"storage.files\[0\].path is not text"),
        ("storage: {files: [{path: /a, mode: x}]}", r"files\[0\].mode is not an integer"),
        ("systemd: {units: [{name: a, enabled: 1}]}", r"units\[0\].enabled is neither true nor false"),
        ("storage: {files: [{path: /a, contents: {local: b}}]}", "contents.local names a file of another machine"),
        ("storage: {files: [{path: /a, contents: {inline: b, remote: {url: c}}}]}", "has both inline and remote"),
        ("storage: {disks: [{device: /a, partitions: [{size: 1000B}]}]}", "is not a whole number of MiB"),
        ("storage: {disks: [{device: /a, partitions: [{size: much}]}]}", "'much' is not a size such as 512MiB"),
        ("etcd: {version: 3.0.0}", "section etcd is not supported; write its units under systemd"),
    ],
)
def test_what_cannot_be_added_is_named(text: str, message: str) -> None:
    with pytest.raises(IgnitionError, match=message):
        added(text)
