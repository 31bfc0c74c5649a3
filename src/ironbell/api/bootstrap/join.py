"""kubeadm's JoinConfiguration: what every other machine does.

Source: kubernetes-sigs/cluster-api: api/bootstrap/kubeadm/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ironbell.api.bootstrap.kubeadm import ApiEndpoint, NodeRegistrationOptions, Patches, Timeouts
from ironbell.api.crd.markers import Schema, Text256, Text512, Text1024, required
from ironbell.api.meta import Model


class BootstrapTokenDiscovery(Model, frozen=True):
    """Discovery by a token."""

    schema_ = Schema(min_properties=1)

    token: Text512 = ""
    api_server_endpoint: Text512 = ""
    ca_cert_hashes: Annotated[list[Text512], Schema(min_items=1, max_items=100, list_type="atomic")] = []
    unsafe_skip_ca_verification: bool | None = field(default=None, name="unsafeSkipCAVerification")


class KubeConfigCluster(Model, frozen=True):
    """The API server, without its address, which is the cluster's."""

    schema_ = Schema(min_properties=1)

    server: Text512 = ""
    tls_server_name: Text512 = ""
    insecure_skip_tls_verify: bool | None = field(default=None, name="insecureSkipTLSVerify")
    certificate_authority_data: Annotated[str, Schema(format="byte", min_length=1, max_length=51200)] = ""
    proxy_url: Text512 = field(default="", name="proxyURL")


class KubeConfigAuthProvider(Model, frozen=True):
    """A plugin that is built into the client."""

    name: Text256 = required(str)
    config: dict[str, str] = {}


class KubeConfigAuthExecEnv(Model, frozen=True):
    """One environment variable of the program."""

    name: Text512 = required(str)
    value: Text512 = required(str)


class KubeConfigAuthExec(Model, frozen=True):
    """A program that prints credentials."""

    command: Text1024 = required(str)
    args: Annotated[list[Text512], Schema(min_items=1, max_items=100, list_type="atomic")] = []
    env: Annotated[list[KubeConfigAuthExecEnv], Schema(min_items=1, max_items=100, list_type="atomic")] = []
    api_version: Text512 = ""
    provide_cluster_info: bool | None = None


class KubeConfigUser(Model, frozen=True):
    """Credentials of the machine in the TLS bootstrap."""

    schema_ = Schema(min_properties=1)

    auth_provider: KubeConfigAuthProvider = KubeConfigAuthProvider()
    exec: KubeConfigAuthExec = KubeConfigAuthExec()


class FileDiscoveryKubeConfig(Model, frozen=True):
    """The kubeconfig's contents."""

    cluster: KubeConfigCluster = KubeConfigCluster()
    user: KubeConfigUser = required(KubeConfigUser)


class FileDiscovery(Model, frozen=True):
    """Discovery by a kubeconfig."""

    kube_config_path: Text512 = required(str)
    kube_config: FileDiscoveryKubeConfig = FileDiscoveryKubeConfig()


class Discovery(Model, frozen=True):
    """Discovery of the cluster, and the certificates that the machine trusts."""

    schema_ = Schema(min_properties=1)

    bootstrap_token: BootstrapTokenDiscovery = BootstrapTokenDiscovery()
    file: FileDiscovery = FileDiscovery()
    tls_bootstrap_token: Text512 = ""


class JoinControlPlane(Model, frozen=True):
    """Configuration of a machine that joins the control plane."""

    local_api_endpoint: ApiEndpoint = field(default=ApiEndpoint(), name="localAPIEndpoint")


class JoinConfiguration(Model, frozen=True):
    """Configuration of every other machine (kubeadm's JoinConfiguration)."""

    schema_ = Schema(min_properties=1)

    node_registration: NodeRegistrationOptions = NodeRegistrationOptions()
    ca_cert_path: Text512 = ""
    discovery: Discovery = Discovery()
    control_plane: JoinControlPlane | None = None
    skip_phases: Annotated[list[Text256], Schema(min_items=1, max_items=50, list_type="atomic")] = []
    patches: Patches = Patches()
    timeouts: Timeouts = Timeouts()
