"""Fields of bootstrap providers' objects, by both contracts.

Source: kubernetes-sigs/cluster-api: internal/contract/bootstrap.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.references import V1BETA1
from ironbell.contract.fields import flag_at, text_at


@dataclass(frozen=True, slots=True)
class BootstrapConfig:
    """A bootstrap configuration."""

    body: Mapping[str, Any]
    contract: str

    @classmethod
    def of(cls, external: External) -> BootstrapConfig:
        """Raises `ReferencedObjectMissingError` if there is none."""
        return cls(external.kind_and_object[1].body, external.contract)

    @property
    def data_secret_created_field(self) -> str:
        """The field that reports it."""
        return "status.ready" if self.contract == V1BETA1 else "status.initialization.dataSecretCreated"

    @property
    def data_secret_created(self) -> bool:
        """Return whether the Secret with the data exists."""
        return flag_at(self.body, *self.data_secret_created_field.split(".")) or False

    @property
    def data_secret_name(self) -> str:
        return text_at(self.body, "status", "dataSecretName")

    @property
    def failure_reason(self) -> str:
        """Return the reason why there will never be data (v1beta1 contract)."""
        return text_at(self.body, "status", "failureReason")

    @property
    def failure_message(self) -> str:
        return text_at(self.body, "status", "failureMessage")
