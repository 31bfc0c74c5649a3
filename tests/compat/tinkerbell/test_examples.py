"""Upstream's example manifests, and what CAPT generates, render and are accepted.

What CAPT generates is here in our own words.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ironbell.codec import goyaml
from ironbell.codec.gotemplate import render
from ironbell.contract.servers.template_data import template_data
from ironbell.contract.servers.workflow_document import WorkflowDocument, parse_document
from support.programs.upstream import both, manifest

_HARDWARE: dict[str, Any] = {
    "spec": {
        "disks": [{"device": "/dev/nvme0n1"}],
        "interfaces": [
            {
                "dhcp": {
                    "mac": "52:54:00:aa:bb:cc",
                    "hostname": "node-1",
                    "name_servers": ["1.1.1.1", "8.8.8.8"],
                    "ip": {"address": "10.0.0.5", "netmask": "255.255.255.0", "gateway": "10.0.0.1"},
                },
                "netboot": {"allowPXE": True},
            }
        ],
        "metadata": {"instance": {"id": "52:54:00:aa:bb:cc", "hostname": "node-1"}},
    }
}
_MAP = {"device_1": "52:54:00:aa:bb:cc"}

# CAPT's generated default (reference of this project, CAPT, A12), as one document.
_CAPT_DEFAULT = """
version: "0.1"
name: cluster-cp-abcde
global_timeout: 6000
tasks:
  - name: "cluster-cp-abcde"
    worker: "{{.device_1}}"
    volumes:
      - /dev:/dev
      - /dev/console:/dev/console
      - /lib/firmware:/lib/firmware:ro
    actions:
      - name: "stream image"
        image: quay.io/tinkerbell/actions/oci2disk
        timeout: 600
        environment:
          IMG_URL: ghcr.io/example/ubuntu-2204:v1.30.0.gz
          DEST_DISK: /dev/nvme0n1
          COMPRESSED: true
      - name: "add tink cloud-init config"
        image: quay.io/tinkerbell/actions/writefile
        timeout: 90
        environment:
          DEST_DISK: /dev/nvme0n1p1
          FS_TYPE: ext4
          DEST_PATH: /etc/cloud/cloud.cfg.d/10_tinkerbell.cfg
          UID: 0
          GID: 0
          MODE: 0600
          DIRMODE: 0700
          CONTENTS: |
            datasource:
              Ec2:
                metadata_urls: ["http://10.0.0.2:50061"]
                strict_id: false
            manage_etc_hosts: localhost
            warnings:
              dsid_missing_source: off
      - name: "add tink cloud-init ds-config"
        image: quay.io/tinkerbell/actions/writefile
        timeout: 90
        environment:
          DEST_DISK: /dev/nvme0n1p1
          FS_TYPE: ext4
          DEST_PATH: /etc/cloud/ds-identify.cfg
          UID: 0
          GID: 0
          MODE: 0600
          DIRMODE: 0700
          CONTENTS: |
            datasource: Ec2
      - name: "kexec image"
        image: ghcr.io/jacobweinstock/waitdaemon:latest
        timeout: 90
        pid: host
        environment:
          BLOCK_DEVICE: /dev/nvme0n1p1
          FS_TYPE: ext4
          IMAGE: quay.io/tinkerbell/actions/kexec
          WAIT_SECONDS: 5
        volumes:
          - /var/run/docker.sock:/var/run/docker.sock
"""

# What a user writes as an override for current images: partitions by function, a static network from the Hardware.
_OVERRIDE = """
{{- $disk := index .Hardware.Disks 0 -}}
{{- $dhcp := (index .Hardware.Interfaces 0).DHCP -}}
version: "0.1"
name: override
global_timeout: 3000
tasks:
  - name: install
    worker: "{{ .device_1 }}"
    actions:
      - name: stream
        image: quay.io/tinkerbell/actions/oci2disk
        timeout: 1200
        environment: {DEST_DISK: {{ $disk }}, COMPRESSED: true}
      - name: netplan
        image: quay.io/tinkerbell/actions/writefile
        timeout: 90
        environment:
          DEST_DISK: {{ formatPartition $disk 3 }}
          DEST_PATH: /etc/netplan/config.yaml
          CONTENTS: |
            network:
              version: 2
              ethernets:
                id0:
                  match: {macaddress: {{ $dhcp.MAC }}}
                  addresses: [{{ $dhcp.IP.Address }}/{{ netmaskToPrefixLength $dhcp.IP.Netmask }}]
                  nameservers: {addresses: [{{ join ", " $dhcp.NameServers }}]}
                  {{- if $dhcp.IP.Gateway }}
                  routes: [{to: default, via: {{ $dhcp.IP.Gateway }}}]
                  {{- end }}
      - name: kexec
        image: ghcr.io/jacobweinstock/waitdaemon
        timeout: 90
        pid: host
        environment: {BLOCK_DEVICE: {{ formatPartition $disk 1 }}, IMAGE: quay.io/tinkerbell/actions/kexec}
"""


def _document(template: str, hardware: dict[str, Any] | None = None) -> WorkflowDocument:
    return parse_document(render(template, template_data(hardware or _HARDWARE, hardware_map=_MAP)))


def test_capts_default_template_is_accepted() -> None:
    (task,) = _document(_CAPT_DEFAULT).tasks
    assert task.agent_id == _MAP["device_1"]
    assert [action.timeout for action in task.actions] == [600, 90, 90, 90]
    assert task.actions[1].environment["MODE"] == "0600"
    assert task.actions[0].environment["COMPRESSED"] == "true"


def test_an_override_with_functions_is_accepted() -> None:
    (task,) = _document(_OVERRIDE).tasks
    netplan = task.actions[1].environment
    assert netplan["DEST_DISK"] == "/dev/nvme0n1p3"
    assert goyaml.load(netplan["CONTENTS"])["network"]["ethernets"]["id0"] == {
        "match": {"macaddress": "52:54:00:aa:bb:cc"},
        "addresses": ["10.0.0.5/24"],
        "nameservers": {"addresses": ["1.1.1.1", "8.8.8.8"]},
        "routes": [{"to": "default", "via": "10.0.0.1"}],
    }


@both
def test_upstreams_example_template_is_accepted(source: Callable[[str], Path]) -> None:
    template = goyaml.load(source("tinkerbell/cmd_agent_example_grpc_template.yaml").read_text())
    workflow = goyaml.load(manifest("tinkerbell/cmd_agent_example_grpc_workflow.yaml").read_text())
    data = template_data(None, hardware_map=workflow["spec"]["hardwareMap"])
    (task,) = parse_document(render(template["spec"]["data"], data)).tasks
    assert task.agent_id == workflow["spec"]["hardwareMap"]["device_1"]
    assert [action.name for action in task.actions] == [f"action {number}" for number in range(1, 7)]
    assert task.actions[5].pid == "host"


def test_upstreams_example_hardware_fills_templates() -> None:
    for hardware in goyaml.load(manifest("tinkerbell/pkg_backend_file_testdata_example.yaml").read_text()):
        template = "{{ with (index .Hardware.Interfaces 0).DHCP }}{{ .MAC }}{{ end }}|{{ .hardware.metadata.name }}"
        dhcp = hardware["spec"]["interfaces"][0]["dhcp"]
        assert render(template, template_data(hardware)) == f"{dhcp['mac']}|{hardware['metadata']['name']}"
