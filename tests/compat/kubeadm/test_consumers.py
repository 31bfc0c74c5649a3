"""Who reads bootstrap data takes them: cloud-init by its own schema, kubeadm by its own `config validate`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ironbell.base.clock import SystemClock
from ironbell.codec import goyaml
from ironbell.contract import pki
from ironbell.contract.cluster_secrets import Purpose
from ironbell.contract.pki import KeyAlgorithm
from ironbell.controllers.kubeadm.config import rendering
from ironbell.controllers.kubeadm.config.files import plain_file
from ironbell.controllers.kubeadm.config.kubeadm import ClusterFacts
from ironbell.controllers.kubeadm.config.rendering import Inputs, bootstrap_data
from ironbell.controllers.kubeadm.config.userdata import Role
from support.cloudinit import NoCloudInitError, cloud_init, schema_problems
from support.gobuild import CannotBuild
from support.real import component

AUTHORITY = pki.make_authority(KeyAlgorithm.ECDSA_P256, SystemClock().now())
SERVICE_ACCOUNT = pki.make_service_account_keys(KeyAlgorithm.ECDSA_P256)
PAIRS = {
    purpose: SERVICE_ACCOUNT if purpose is Purpose.SERVICE_ACCOUNT else AUTHORITY
    for purpose in (Purpose.CLUSTER_CA, Purpose.ETCD_CA, Purpose.FRONT_PROXY_CA, Purpose.SERVICE_ACCOUNT)
}
TOKEN = "a1b2c3.0123456789abcdef"
REGISTRATION = {
    "name": "node-1",
    "criSocket": "unix:///run/containerd/containerd.sock",
    "kubeletExtraArgs": [{"name": "provider-id", "value": "ironbell://site/node-1"}, {"name": "v", "value": "2"}],
    "ignorePreflightErrors": ["DirAvailable--etc-kubernetes-manifests"],
    "imagePullPolicy": "IfNotPresent",
    "taints": [],
}
TIMEOUTS = {
    "controlPlaneComponentHealthCheckSeconds": 240,
    "kubeletHealthCheckSeconds": 240,
    "kubernetesAPICallSeconds": 60,
    "etcdAPICallSeconds": 120,
    "tlsBootstrapSeconds": 300,
    "discoverySeconds": 300,
}
VOLUME = {"name": "audit", "hostPath": "/var/log/audit", "mountPath": "/var/log/audit", "pathType": "DirectoryOrCreate"}
COMPONENT = {
    "extraArgs": [{"name": "v", "value": "2"}],
    "extraVolumes": [VOLUME],
    "extraEnvs": [{"name": "HTTPS_PROXY", "value": "http://192.0.2.9:3128"}],
}
# users' `inactive` is not in it: the API has a switch there, cloud-init wants a number of days as text
HOST = {
    "files": [
        {"path": "/etc/motd", "content": "rack 7\n", "owner": "root:root", "permissions": "0644", "append": True},
        {"path": "/etc/blob", "content": "aGVsbG8=", "encoding": "base64"},
    ],
    "users": [
        {
            "name": "operator",
            "gecos": "Operator",
            "groups": "adm, sudo",
            "homeDir": "/home/operator",
            "lockPassword": True,
            "shell": "/bin/bash",
            "primaryGroup": "operator",
            "sudo": "ALL=(ALL) NOPASSWD:ALL",
            "sshAuthorizedKeys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA operator@example.org"],
        }
    ],
    "ntp": {"enabled": True, "servers": ["192.0.2.123"]},
    "diskSetup": {
        "partitions": [
            {
                "device": "/dev/vdb",
                "layout": True,
                "overwrite": False,
                "tableType": "gpt",
                "diskLayout": [{"percentage": 40}, {"percentage": 60, "partitionType": "Linux"}],
            }
        ],
        "filesystems": [
            {
                "device": "/dev/vdb",
                "filesystem": "ext4",
                "label": "etcd",
                "partition": "auto",
                "overwrite": False,
                "extraOpts": ["-E", "lazy_itable_init=1"],
            }
        ],
    },
    "mounts": [["LABEL=etcd", "/var/lib/etcd"]],
    "bootCommands": ["echo booting"],
    "preKubeadmCommands": ["hostnamectl set-hostname node-1"],
    "postKubeadmCommands": ['echo "joined"'],
    "verbosity": 5,
}
FULL: dict[str, Any] = {
    **HOST,
    "clusterConfiguration": {
        "etcd": {
            "local": {
                "dataDir": "/var/lib/etcd/data",
                "extraArgs": [{"name": "quota-backend-bytes", "value": "8589934592"}],
            }
        },
        "apiServer": {**COMPONENT, "certSANs": ["api.example.org", "192.0.2.11"]},
        "controllerManager": COMPONENT,
        "scheduler": COMPONENT,
        "dns": {"imageRepository": "registry.example.org/coredns", "imageTag": "v1.12.4"},
        "certificatesDir": "/etc/kubernetes/pki",
        "imageRepository": "registry.example.org/k8s",
        "featureGates": {"NodeLocalCRISocket": True},
        "certificateValidityPeriodDays": 365,
        "caCertificateValidityPeriodDays": 3650,
        "encryptionAlgorithm": "ECDSA-P256",
    },
    "initConfiguration": {
        "nodeRegistration": {**REGISTRATION, "imagePullSerial": False},
        "localAPIEndpoint": {"advertiseAddress": "192.0.2.21", "bindPort": 6443},
        "skipPhases": ["addon/kube-proxy"],
        "patches": {"directory": "/etc/kubernetes/patches"},
        "timeouts": TIMEOUTS,
        "bootstrapTokens": [{"token": TOKEN, "ttlSeconds": 900, "usages": ["signing", "authentication"]}],
    },
    "joinConfiguration": {
        "nodeRegistration": {**REGISTRATION, "imagePullSerial": True},
        "caCertPath": "/etc/kubernetes/pki/ca.crt",
        "discovery": {
            "bootstrapToken": {
                "token": TOKEN,
                "apiServerEndpoint": "192.0.2.10:6443",
                "caCertHashes": pki.certificate_hashes(AUTHORITY.certificate),
            }
        },
        "patches": {"directory": "/etc/kubernetes/patches"},
        "timeouts": TIMEOUTS,
    },
}
BARE: dict[str, Any] = {"joinConfiguration": {"discovery": FULL["joinConfiguration"]["discovery"]}}


def data(role: Role, spec: dict[str, Any], version: str = "1.36.2") -> str:
    if role is Role.CONTROL_PLANE:
        spec = {**spec, "joinConfiguration": {**spec["joinConfiguration"], "controlPlane": {}}}
    inputs = Inputs(
        role,
        rendering.with_taint(spec) if role is Role.WORKER else spec,
        tuple(map(int, version.split("."))),
        ClusterFacts("one", f"v{version}", "192.0.2.10:6443", "cluster.local", "10.96.0.0/12", "10.244.0.0/16"),
        files=[plain_file(file) for file in spec.get("files", [])],
        users=spec.get("users", []),
        pairs=PAIRS,
    )
    return bootstrap_data(inputs)


ROLES = pytest.mark.parametrize("role", list(Role), ids=lambda role: role.name)
SPECS = pytest.mark.parametrize("spec", [BARE, FULL], ids=["bare", "full"])


@ROLES
@SPECS
def test_cloud_init_takes_them(role: Role, spec: dict[str, Any], tmp_path: Path) -> None:
    try:
        modules = cloud_init()
    except NoCloudInitError as error:
        pytest.skip(str(error))
    assert schema_problems(modules, data(role, spec), tmp_path / "user-data") == ""


def test_cloud_inits_check_finds_faults(tmp_path: Path) -> None:
    try:
        modules = cloud_init()
    except NoCloudInitError as error:
        pytest.skip(str(error))
    broken = data(Role.WORKER, BARE).replace("runcmd:", "runcmd: 7\nignored:")
    assert "runcmd" in schema_problems(modules, broken, tmp_path / "user-data")


@ROLES
@SPECS
def test_kubeadm_takes_them(role: Role, spec: dict[str, Any], tmp_path: Path) -> None:
    try:
        kubeadm = component("kubeadm")
    except CannotBuild as error:
        pytest.skip(f"no kubeadm: {error}")
    files = {file["path"]: file["content"] for file in goyaml.load(data(role, spec))["write_files"]}
    name = "kubeadm.yaml" if role is Role.INIT else "kubeadm-join-config.yaml"
    config = tmp_path / name
    config.write_text(files[f"/run/kubeadm/{name}"])
    command = [kubeadm, "config", "validate", "--config", config]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "ok"), done.stderr
