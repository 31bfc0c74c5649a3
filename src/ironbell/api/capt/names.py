"""Well-known names of the provider: group, labels, annotations, finalizers.

Other programs look for these, so they are spelt as upstream spells them; what is ours is under `ironbell.dev/`.

Source: tinkerbell/cluster-api-provider-tinkerbell: api/v1beta1, controller/machine.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.names import LABEL_CLUSTERCTL

GROUP: Final = "infrastructure.cluster.x-k8s.io"
VERSION: Final = "v1beta1"

CRD_LABELS: Final[tuple[tuple[str, str], ...]] = (
    ("cluster.x-k8s.io/provider", "infrastructure-tinkerbell"),
    (LABEL_CLUSTERCTL, ""),  # what clusterctl adds when it installs: without it nothing of these kinds moves
    ("cluster.x-k8s.io/v1beta1", "v1beta1"),
    ("cluster.x-k8s.io/v1beta2", "v1beta1"),
    ("clusterctl.cluster.x-k8s.io", ""),
)
"""Both contracts are served by the API version v1beta1."""

LABEL_OWNER_NAME: Final = "v1alpha1.tinkerbell.org/ownerName"
"""On Hardware that is taken: name of the TinkerbellMachine."""

LABEL_OWNER_NAMESPACE: Final = "v1alpha1.tinkerbell.org/ownerNamespace"
"""On Hardware that is taken: namespace of the TinkerbellMachine."""

ANNOTATION_PROVISIONED: Final = "v1alpha1.tinkerbell.org/provisioned"
"""On Hardware: `true` once its operating system was installed for its owner."""

ANNOTATION_TEMPLATE_OVERRIDE: Final = "hardware.tinkerbell.org/capt-template-override"
"""On Hardware: name of a Template in its namespace that is used for it."""

LABEL_MACHINE_NAME: Final = "capt.tinkerbell.org/machine-name"
"""On Templates, Workflows and Jobs of a TinkerbellMachine: its name."""

LABEL_MACHINE_NAMESPACE: Final = "capt.tinkerbell.org/machine-namespace"
"""On Templates, Workflows and Jobs of a TinkerbellMachine: its namespace."""

FINALIZER: Final = "infrastructure.cluster.x-k8s.io/tinkerbellmachine"
"""On a TinkerbellMachine, and on the Hardware that it has."""

LEGACY_FINALIZER: Final = "tinkerbellmachine.infrastructure.cluster.x-k8s.io"
"""The older spelling: taken off wherever the newer one is put on or taken off."""

PROVIDER_ID_SCHEME: Final = "tinkerbell"
"""A machine's provider id is `tinkerbell://<namespace>/<name>` of its Hardware."""
