"""Both versions of ExtensionConfig.

Source: kubernetes-sigs/cluster-api: api/runtime/v1alpha1/conversion.go, core/webhooks/conversion/extensionconfig.go.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.conversion.rules import Rule
from ironbell.api.conversion.status import Status

EXTENSION_CONFIG: Final[tuple[Rule, ...]] = (Status(),)
