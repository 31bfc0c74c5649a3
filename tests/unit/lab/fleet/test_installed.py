"""What an installed system reads: cloud-init's files, kubeadm's endpoint, versions in names; and iPXE scripts."""

from __future__ import annotations

import pytest

from ironbell.lab.fleet.installed import cloud_config, endpoint_of, kernel_arguments, kubeadm_of, version_of
from ironbell.lab.fleet.state import DiskContents
from ironbell.lab.sim.cluster.bootstrap import BootstrapDataError, Kubeadm

CONFIG = """
datasource: {Ec2: {metadata_urls: ["http://192.0.2.1:7080/"], strict_id: false}}
reporting: {ironbell: {type: webhook, endpoint: "http://192.0.2.1:7080/reports/cloud-init"}, local: {type: log}}
"""
JOIN = {"JoinConfiguration": {"discovery": {"bootstrapToken": {"apiServerEndpoint": "127.99.0.1:7443"}}}}


def test_cloud_init_asks_where_its_file_says() -> None:
    contents = DiskContents(image="x", files={"/etc/cloud/cloud.cfg.d/10_tinkerbell.cfg": CONFIG, "/etc/motd": "a: ["})
    found = cloud_config(contents, site="http://site")
    assert found.metadata_urls == ("http://192.0.2.1:7080",)
    assert found.endpoints == ("http://192.0.2.1:7080/reports/cloud-init",)


def test_a_system_that_names_no_source_asks_the_site() -> None:
    found = cloud_config(DiskContents(image="x"), site="http://site")
    assert (found.metadata_urls, found.endpoints) == (("http://site",), ())


def test_user_data_without_kubeadm_is_none_of_its_business() -> None:
    assert kubeadm_of("", {}) is None
    assert kubeadm_of("#cloud-config\nruncmd: [echo hello]\n", {}) is None


@pytest.mark.parametrize(
    ("run", "endpoint"),
    [
        (Kubeadm("join", JOIN, {}), "127.99.0.1:7443"),
        (Kubeadm("init", {"ClusterConfiguration": {"controlPlaneEndpoint": "127.99.0.2:6443"}}, {}), "127.99.0.2:6443"),
        (Kubeadm("init", {"ClusterConfiguration": {"controlPlaneEndpoint": "api.example"}}, {}), "api.example:6443"),
    ],
)
def test_endpoints(run: Kubeadm, endpoint: str) -> None:
    assert str(endpoint_of(run)) == endpoint


def test_a_cluster_without_an_address() -> None:
    with pytest.raises(BootstrapDataError, match="kubeadm init: its configuration does not name"):
        endpoint_of(Kubeadm("init", {}, {}))


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("ghcr.io/tinkerbell/cluster-api-provider-tinkerbell/ubuntu-2004:v1.34.2.gz", "v1.34.2"),
        ("http://images/debian-12-v1.36.0-rc.1.raw.zst", "v1.36.0-rc.1"),
        ("http://images/debian.raw", "v1.33.0"),
    ],
)
def test_the_version_is_that_of_the_image(image: str, version: str) -> None:
    run = Kubeadm("init", {"ClusterConfiguration": {"kubernetesVersion": "v1.33.0"}}, {})
    assert version_of(DiskContents(image=image), run) == version


def test_kernel_arguments() -> None:
    script = "#!ipxe\nkernel http://a/vmlinuz worker_id=x grpc_authority=1.2.3.4:5 ro && goto after_kernel ||\nboot\n"
    assert dict(kernel_arguments(script)) == {"worker_id": "x", "grpc_authority": "1.2.3.4:5", "ro": ""}
    assert dict(kernel_arguments("#!ipxe\nexit 1\n")) == {}
