"""The workflow template of machines without another one: write the image, configure cloud-init, start the system. Pure.

cloud-init's configuration is written to the root file system of the image, which is on different partitions. Upstream's
default names the first partition, which was right for older images.

A program that sends the output of a failed bootstrap is written as well: cloud-init reports that a module failed, but
not its output, which has kubeadm's cause. The unit of cloud-init's last stage runs the program if the stage failed. It
only needs the Python and the YAML that cloud-init needs itself, and reads the address from cloud-init's configuration.
Without systemd it never runs, and the failure is reported without output.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/template.go, docs/QUICK-START.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.codec import goyaml

_ACTIONS: Final = "quay.io/tinkerbell/actions"
_CLOUD_CONFIG: Final = "/etc/cloud/cloud.cfg.d/10_tinkerbell.cfg"
GLOBAL_TIMEOUT_S: Final = 6000
PROGRAM_PATH: Final = "/etc/cloud/ironbell-report-failure"
UNIT_PATH: Final = "/etc/systemd/system/cloud-final.service.d/10-ironbell.conf"
UNIT: Final = f"""\
[Service]
ExecStopPost=-/usr/bin/env python3 {PROGRAM_PATH}
"""
PROGRAM: Final = """\
# Reports the end of the output of a bootstrap that failed. systemd runs it when cloud-final.service ends.
import glob, json, os, time, urllib.request
import yaml

LOG = "/var/log/cloud-init-output.log"
if os.environ.get("SERVICE_RESULT") == "success":
    raise SystemExit
endpoints = []
for path in sorted(glob.glob("/etc/cloud/cloud.cfg.d/*.cfg")):
    with open(path) as file:
        config = yaml.safe_load(file) or {}
    for handler in (config.get("reporting") or {}).values():
        if isinstance(handler, dict) and handler.get("type") == "webhook":
            endpoints.append(handler["endpoint"])
with open(LOG, "rb") as file:
    file.seek(max(os.path.getsize(LOG) - 32768, 0))
    lines = file.read().decode(errors="replace").splitlines()
own = ("cloud-init", "Cloud-init v.")
lines = [line for line in lines if not line.startswith(own) and "py[WARNING]:" not in line][-40:]
report = {
    "name": "modules-final",
    "description": "bootstrap failed",
    "event_type": "finish",
    "result": "FAIL",
    "output": "\\n".join(lines),
}
body = json.dumps(report).encode()
for endpoint in endpoints:
    for _ in range(5):
        try:
            request = urllib.request.Request(endpoint, body, {"Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=10).close()
            break
        except OSError as error:
            print("report not sent:", error)
            time.sleep(2)
"""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Values for the template."""

    name: str
    image_url: str
    disk: str
    metadata_url: str
    """URL by which the machine reaches the metadata service, such as `http://192.0.2.1:7080`."""
    image_sha256: str = ""
    """Checksum of the image as it is served; empty if it is unknown."""


def default_template(inputs: Inputs) -> str:
    """Return the template. An image over HTTP is written as a file; any other is pulled from its registry."""
    over_http = inputs.image_url.startswith(("http://", "https://"))
    checked = {"IMG_CHECKSUM": f"sha256:{inputs.image_sha256}"} if inputs.image_sha256 else {}
    compressed = inputs.image_url.rpartition(".")[2] in ("gz", "xz", "zst", "bz2") or not over_http
    document = {
        "version": "0.1",
        "name": inputs.name,
        "global_timeout": GLOBAL_TIMEOUT_S,
        "tasks": [
            {
                "name": inputs.name,
                "worker": "{{.device_1}}",
                "volumes": ["/dev:/dev", "/dev/console:/dev/console", "/lib/firmware:/lib/firmware:ro"],
                "actions": [
                    {
                        "name": "stream image",
                        "image": f"{_ACTIONS}/{'image2disk' if over_http else 'oci2disk'}",
                        "timeout": 3600,
                        "environment": {
                            "IMG_URL": inputs.image_url,
                            "DEST_DISK": inputs.disk,
                            "COMPRESSED": "true" if compressed else "false",
                            **checked,
                        },
                    },
                    _file(inputs, "add tink cloud-init config", _CLOUD_CONFIG, _cloud(inputs)),
                    _file(inputs, "add tink cloud-init ds-config", "/etc/cloud/ds-identify.cfg", "datasource: Ec2\n"),
                    _file(inputs, "add report of failures", PROGRAM_PATH, PROGRAM),
                    _file(inputs, "add unit of report of failures", UNIT_PATH, UNIT),
                    {
                        "name": "start the installed system",
                        "image": "reboot",
                        "timeout": 90,
                        "environment": {"WAIT_SECONDS": "3"},
                    },
                ],
            }
        ],
    }
    return goyaml.dump(document)


def _file(inputs: Inputs, name: str, path: str, contents: str) -> dict[str, object]:
    return {
        "name": name,
        "image": f"{_ACTIONS}/writefile",
        "timeout": 90,
        "environment": {
            "DEST_DISK": inputs.disk,
            "DEST_PARTITION": "root",
            "DEST_PATH": path,
            "UID": "0",
            "GID": "0",
            "MODE": "0600",
            "DIRMODE": "0700",
            "CONTENTS": contents,
        },
    }


def _cloud(inputs: Inputs) -> str:
    user = {"name": "tink", "groups": ["wheel", "adm"], "sudo": ["ALL=(ALL) NOPASSWD:ALL"], "shell": "/bin/bash"}
    report = {"type": "webhook", "endpoint": f"{inputs.metadata_url}/reports/cloud-init"}
    return goyaml.dump(
        {
            "datasource": {"Ec2": {"metadata_urls": [inputs.metadata_url], "strict_id": False}},
            "system_info": {"default_user": user},
            "manage_etc_hosts": "localhost",
            "reporting": {"ironbell": report},
            "warnings": {"dsid_missing_source": "off"},
        }
    )
