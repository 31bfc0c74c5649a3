"""Status fields of version v1beta1 that version v1beta2 keeps under `status.deprecated`.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.crd.markers import Schema, Text256, Text10240, Time, required
from ironbell.api.meta import Model


class LegacyCondition(Model, frozen=True):
    """One observation in the form of version v1beta1, with a severity."""

    schema_ = Schema(required=("lastTransitionTime",))

    type: Text256 = required(str)
    status: str = required(str)
    severity: Annotated[str, Schema(max_length=32)] = ""
    last_transition_time: Time = None
    reason: Text256 = ""
    message: Text10240 = ""


class V1Beta1FailureStatus(Model, frozen=True):
    """Conditions and the failure, as version v1beta1 has them."""

    conditions: list[LegacyCondition] = []
    failure_reason: str | None = None
    failure_message: Annotated[str | None, Schema(min_length=1, max_length=10240)] = None


class DeprecatedFailureStatus(Model, frozen=True):
    """Status fields of older versions."""

    v1beta1: V1Beta1FailureStatus | None = None


class V1Beta1ConditionsStatus(Model, frozen=True):
    """Conditions as version v1beta1 has them."""

    conditions: list[LegacyCondition] = []


class DeprecatedConditionsStatus(Model, frozen=True):
    """Status fields of older versions."""

    v1beta1: V1Beta1ConditionsStatus | None = None
