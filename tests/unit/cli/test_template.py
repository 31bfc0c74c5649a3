"""`ironbell template render`: what goes where, and with which status."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ironbell.cli.main import cli

_HARDWARE = """
apiVersion: tinkerbell.org/v1alpha1
kind: Hardware
metadata: {name: node-1, labels: {rack: r1}}
spec:
  disks: [{device: /dev/nvme0n1}]
  interfaces:
  - dhcp:
      mac: 52:54:00:aa:bb:cc
      lease_time: 86400
      ip: {address: 192.168.2.15, netmask: 255.255.255.0, gateway: 192.168.2.1}
"""
_DATA = """version: "0.1"
name: install
global_timeout: 1800
tasks:
  - name: os
    worker: "{{.device_1}}"
    actions:
      - name: partition
        image: quay.io/tinkerbell/actions/rootio:latest
        timeout: 90
        environment:
          DEST: {{ formatPartition (index .Hardware.Disks 0) 1 }}
          LEASE: {{ (index .hardware.spec.interfaces 0).dhcp.lease_time | int64 }}
          MASK: {{ netmaskToPrefixLength (index .hardware.spec.interfaces 0).dhcp.ip.netmask }}
"""


def _template(data: str) -> str:
    indented = "".join(f"    {line}" for line in data.splitlines(keepends=True))
    return f"apiVersion: tinkerbell.org/v1alpha1\nkind: Template\nmetadata: {{name: t}}\nspec:\n  data: |\n{indented}"


def _render(folder: Path, template: str, hardware: str, *options: str) -> Result:
    (folder / "template.yaml").write_text(template)
    (folder / "hardware.yaml").write_text(hardware)
    arguments = ["template", "render", str(folder / "template.yaml"), "--hardware", str(folder / "hardware.yaml")]
    return CliRunner().invoke(cli, [*arguments, *options])


def test_a_valid_workflow_is_printed_as_it_is(tmp_path: Path) -> None:
    result = _render(tmp_path, _template(_DATA), _HARDWARE, "--map", "device_1=52:54:00:aa:bb:cc")
    wanted = _DATA.replace("{{.device_1}}", "52:54:00:aa:bb:cc")
    wanted = wanted.replace("{{ formatPartition (index .Hardware.Disks 0) 1 }}", "/dev/nvme0n1p1")
    wanted = wanted.replace("{{ (index .hardware.spec.interfaces 0).dhcp.lease_time | int64 }}", "86400")
    wanted = wanted.replace("{{ netmaskToPrefixLength (index .hardware.spec.interfaces 0).dhcp.ip.netmask }}", "24")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == wanted


def test_a_template_that_does_not_render_prints_nothing_and_names_the_line(tmp_path: Path) -> None:
    result = _render(tmp_path, _template(_DATA), _HARDWARE)
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'template line 6: map has no entry for key "device_1"' in result.stderr
    assert 'worker: "{{.device_1}}"' in result.stderr


def test_a_template_that_does_not_parse_names_the_line(tmp_path: Path) -> None:
    result = _render(tmp_path, _template("a: 1\nb: {{ now }}\n"), _HARDWARE)
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'template line 2: function "now" not defined' in result.stderr


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("tasks: []\n", "template must have at least one task defined"),
        ("name: [x]\n", "line 1: name must be a text"),
        ("a: b: c\n", "line 1: mapping values are not allowed"),
        ("name: x\nname: y\n", "line 2: mapping key 'name' already defined at line 1"),
        (_DATA.replace('"{{.device_1}}"', '""'), "worker: is empty after rendering"),
        (_DATA.replace("{{.device_1}}", "x").replace("rootio:latest", "Rootio:latest"), "must be lower case"),
    ],
)
def test_a_text_that_is_no_workflow_is_printed_with_the_reasons(tmp_path: Path, data: str, reason: str) -> None:
    result = _render(tmp_path, _template(data), _HARDWARE)
    assert result.exit_code == 2
    assert result.stdout.startswith(data[:9])
    assert reason in result.stderr


def test_manifests_may_hold_other_documents_and_lists(tmp_path: Path) -> None:
    workflow = "apiVersion: tinkerbell.org/v1alpha1\nkind: Workflow\nmetadata: {name: w}\n"
    listed = "".join(f"  {line}" for line in _HARDWARE.strip().splitlines(keepends=True))
    hardware = f"apiVersion: v1\nkind: List\nitems:\n- {listed.lstrip()}\n"
    result = _render(tmp_path, f"{workflow}---\n{_template(_DATA)}---\n", hardware, "--map", "device_1=x")
    assert (result.exit_code, result.stderr) == (0, "")


def test_none_or_several_objects_are_refused(tmp_path: Path) -> None:
    for hardware in ("", "kind: Hardware\n", f"{_HARDWARE}---\n{_HARDWARE}"):
        result = _render(tmp_path, _template(_DATA), hardware, "--map", "device_1=x")
        assert result.exit_code == 1
        assert result.stdout == ""
        assert "Hardware" in str(result.exception)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("{name: node-1, labels: {rack: r1}}", "node-1", "$.metadata"),
        ("[{device: /dev/nvme0n1}]", "/dev/nvme0n1", "$.spec.disks"),
        ("lease_time: 86400", "lease_time: a day", "lease_time"),
        ("lease_time: 86400", "lease_time: 99999999999999999999", "Hardware node-1"),
    ],
)
def test_a_hardware_that_the_api_would_refuse_is_refused(tmp_path: Path, old: str, new: str, where: str) -> None:
    result = _render(tmp_path, _template(_DATA), _HARDWARE.replace(old, new), "--map", "device_1=x")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "hardware.yaml: Hardware" in str(result.exception)
    assert where in str(result.exception)


def test_objects_of_another_version_are_not_taken(tmp_path: Path) -> None:
    result = _render(tmp_path, _template(_DATA).replace("v1alpha1", "v1alpha2"), _HARDWARE, "--map", "device_1=x")
    assert "contains no Template of tinkerbell.org/v1alpha1" in str(result.exception)


def test_both_manifests_may_be_on_standard_input() -> None:
    arguments = ["template", "render", "-", "--hardware", "-", "--map", "device_1=x"]
    result = CliRunner().invoke(cli, arguments, input=f"{_HARDWARE}---\n{_template(_DATA)}")
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["template", "render", str(tmp_path / "none.yaml")])
    assert "none.yaml; give the file that holds a manifest" in str(result.exception)


def test_a_map_without_value_is_a_usage_error(tmp_path: Path) -> None:
    result = _render(tmp_path, _template(_DATA), _HARDWARE, "--map", "device_1")
    assert result.exit_code == 2
    assert "'device_1' is not NAME=VALUE" in result.stderr
