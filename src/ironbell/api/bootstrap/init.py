"""kubeadm's InitConfiguration: what the first control plane machine does.

Source: kubernetes-sigs/cluster-api: api/bootstrap/kubeadm/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ironbell.api.bootstrap.kubeadm import ApiEndpoint, BootstrapToken, NodeRegistrationOptions, Patches, Timeouts
from ironbell.api.crd.markers import Schema, Text256
from ironbell.api.meta import Model


class InitConfiguration(Model, frozen=True):
    """Configuration of the first control plane machine (kubeadm's InitConfiguration)."""

    schema_ = Schema(min_properties=1)

    bootstrap_tokens: Annotated[list[BootstrapToken], Schema(min_items=1, max_items=100, list_type="atomic")] = []
    node_registration: NodeRegistrationOptions = NodeRegistrationOptions()
    local_api_endpoint: ApiEndpoint = field(default=ApiEndpoint(), name="localAPIEndpoint")
    skip_phases: Annotated[list[Text256], Schema(min_items=1, max_items=50, list_type="atomic")] = []
    patches: Patches = Patches()
    timeouts: Timeouts = Timeouts()
