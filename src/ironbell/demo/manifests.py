"""Manifests of the demonstration on one server: a Template and a Workflow, as a user would write them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]

TEMPLATE_NAME = "install-debian"

TEMPLATE = """\
version: "0.1"
name: install-debian
global_timeout: 3600
tasks:
- name: install
  worker: "{{ .device_1 }}"
  volumes:
  - /dev:/dev
  actions:
  - name: erase the disk
    image: wipe
    timeout: 600
    environment:
      DEST_DISK: {{ index .Hardware.Disks 0 }}
  - name: write the image
    image: quay.io/tinkerbell/actions/image2disk
    timeout: 1800
    environment:
      IMG_URL: {{ .image_url }}
      IMG_CHECKSUM: {{ .image_checksum }}
      DEST_DISK: {{ index .Hardware.Disks 0 }}
      COMPRESSED: "true"
  - name: point cloud-init at us
    image: quay.io/tinkerbell/actions/writefile
    timeout: 120
    environment:
      DEST_DISK: {{ formatPartition (index .Hardware.Disks 0) 3 }}
      FS_TYPE: ext4
      DEST_PATH: /etc/cloud/cloud.cfg.d/10_tinkerbell.cfg
      UID: "0"
      GID: "0"
      MODE: "0600"
      DIRMODE: "0700"
      CONTENTS: |
        datasource_list: [Ec2]
        datasource:
          Ec2:
            metadata_urls: ["{{ .metadata_url }}"]
            strict_id: false
        reporting:
          ironbell:
            type: webhook
            endpoint: "{{ .metadata_url }}/reports/cloud-init"
        warnings:
          dsid_missing_source: off
  - name: boot into it
    image: ghcr.io/jacobweinstock/waitdaemon
    timeout: 120
    environment:
      IMAGE: reboot
      WAIT_SECONDS: "1"
"""


@dataclass(frozen=True)
class Installation:
    """The installation of one machine."""

    machine: str
    mac: str
    image_url: str
    image_checksum: str
    metadata_url: str
    namespace: str = "default"


def template(namespace: str = "default") -> Document:
    """The Template that installs Debian."""
    return {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Template",
        "metadata": {"name": TEMPLATE_NAME, "namespace": namespace},
        "spec": {"data": TEMPLATE},
    }


def workflow(installation: Installation) -> Document:
    """The Workflow of an installation."""
    return {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": f"install-{installation.machine}", "namespace": installation.namespace},
        "spec": {
            "templateRef": TEMPLATE_NAME,
            "hardwareRef": installation.machine,
            "hardwareMap": {
                "device_1": installation.mac,
                "image_url": installation.image_url,
                "image_checksum": installation.image_checksum,
                "metadata_url": installation.metadata_url,
            },
            "bootOptions": {"toggleAllowNetboot": True, "bootMode": "netboot"},
        },
    }


def user_data(*, user: str, password: str) -> str:
    """cloud-init user data: one account that can log in on the console."""
    return (
        "#cloud-config\n"
        "users:\n"
        f"- name: {user}\n"
        "  shell: /bin/bash\n"
        "  sudo: ALL=(ALL) NOPASSWD:ALL\n"
        "  lock_passwd: false\n"
        f'  plain_text_passwd: "{password}"\n'
    )
