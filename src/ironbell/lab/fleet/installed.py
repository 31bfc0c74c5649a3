"""Settings of the system on a simulated server's disk: cloud-init's sources, and the cluster that kubeadm is for. Pure.

Source: canonical/cloud-init: doc/rtd/reference/datasources/ec2.rst, doc/rtd/reference/yaml_examples/reporting.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ironbell.base.errors import IronbellError
from ironbell.base.ports import KUBERNETES_API_PORT
from ironbell.codec import goyaml
from ironbell.lab.fleet.state import DiskContents
from ironbell.lab.sim.cluster.bootstrap import BootstrapDataError, Kubeadm, Script, read_kubeadm, read_script
from ironbell.lab.sim.cluster.cluster import Endpoint

FOLDER: Final = "/etc/cloud/cloud.cfg.d/"
_VERSION: Final = re.compile(r"v\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+]+?)?(?=$|\.gz|\.img|\.raw|\.qcow2|\.xz|\.zst|/|@|_)")


@dataclass(frozen=True, slots=True)
class CloudConfig:
    """Addresses of cloud-init's metadata sources, and of the receivers of its reports."""

    metadata_urls: tuple[str, ...]
    endpoints: tuple[str, ...]


def cloud_config(contents: DiskContents, *, site: str) -> CloudConfig:
    """Read the files that actions wrote. A system that names no source uses the site, which has the well-known address
    of metadata."""
    settings: dict[str, Any] = {}
    for path, text in sorted(contents.files.items()):
        if path.startswith(FOLDER):
            settings |= _mapping(text)
    ec2 = _mapping_at(_mapping_at(settings, "datasource"), "Ec2")
    urls = tuple(url.rstrip("/") for url in ec2.get("metadata_urls") or () if isinstance(url, str))
    handlers = [handler for handler in _mapping_at(settings, "reporting").values() if isinstance(handler, dict)]
    endpoints = (handler.get("endpoint") for handler in handlers if handler.get("type") == "webhook")
    return CloudConfig(urls or (site,), tuple(url for url in endpoints if isinstance(url, str)))


def kubeadm_of(user_data: str, metadata: Mapping[str, str]) -> Kubeadm | None:
    """The run of kubeadm in the user data; None if it has none.

    Raises:
        BootstrapDataError: the user data cannot be used.
    """
    if not user_data.strip():
        return None
    form = "ignition" if user_data.lstrip().startswith("{") else "cloud-config"
    script: Script = read_script(user_data.encode(), form, metadata)
    return read_kubeadm(script) if any("kubeadm" in command for command in script.commands) else None


def endpoint_of(run: Kubeadm) -> Endpoint:
    """Address of the cluster's API, also before it serves.

    Raises:
        BootstrapDataError: kubeadm's configuration does not name it.
    """
    text = (
        str(run.section("ClusterConfiguration").get("controlPlaneEndpoint") or "")
        if run.verb == "init"
        else str(run.section("JoinConfiguration", "discovery", "bootstrapToken").get("apiServerEndpoint") or "")
    )
    if not text:
        raise BootstrapDataError(f"kubeadm {run.verb}: its configuration does not name the cluster's API")
    host, colon, port = text.rpartition(":")
    if not colon:
        return Endpoint(text, KUBERNETES_API_PORT)
    if not port.isdecimal():
        raise BootstrapDataError(f"kubeadm {run.verb}: {text!r} is not a valid address of an API")
    return Endpoint(host.strip("[]"), int(port))


def version_of(contents: DiskContents, run: Kubeadm) -> str:
    """The installed version of Kubernetes: from the image's name, else from kubeadm's configuration."""
    named = _VERSION.search(contents.image)
    return named[0] if named else str(run.section("ClusterConfiguration").get("kubernetesVersion") or "v0.0.0")


def report(name: str, *, finish: bool, ok: bool = True, text: str = "") -> dict[str, Any]:
    """A document of cloud-init's webhook reporter."""
    document: dict[str, Any] = {
        "name": name,
        "description": text or f"running {name}",
        "event_type": "finish" if finish else "start",
    }
    return {**document, "result": "SUCCESS" if ok else "FAIL"} if finish else document


def kernel_arguments(script: str) -> Iterator[tuple[str, str]]:
    """The arguments of the kernel that an iPXE script starts; none if it starts the disk."""
    for line in script.splitlines():
        words = line.split(" && ")[0].split()
        if words[:1] == ["kernel"]:
            for word in words[2:]:
                name, _, value = word.partition("=")
                yield name, value
            return


def _mapping(text: str) -> dict[str, Any]:
    try:
        value = goyaml.load(text)
    except IronbellError:
        return {}
    return value if isinstance(value, dict) else {}


def _mapping_at(of: dict[str, Any], name: str) -> dict[str, Any]:
    value = of.get(name)
    return value if isinstance(value, dict) else {}
