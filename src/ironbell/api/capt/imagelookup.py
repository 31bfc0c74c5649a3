"""Location of a machine's image: four fields that a machine may set for itself or leave to its cluster.

Source: tinkerbell/cluster-api-provider-tinkerbell: api/v1beta1/tinkerbellcluster_types.go.
"""

from __future__ import annotations

from typing import Final

DEFAULT_FORMAT: Final = "{{.BaseRegistry}}/{{.OSDistro}}-{{.OSVersion}}:{{.KubernetesVersion}}.gz"
DEFAULT_BASE_REGISTRY: Final = "ghcr.io/tinkerbell/cluster-api-provider-tinkerbell"
DEFAULT_OS_DISTRO: Final = "ubuntu"
DEFAULT_OS_VERSIONS: Final = {"ubuntu": "20.04"}
"""By distribution, in lower case."""
