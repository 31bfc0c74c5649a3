"""Names that the BMC controllers put on objects, besides those of `api.tinkerbell.names`."""

from __future__ import annotations

from typing import Final

ANNOTATION_ATTEMPT: Final = "ironbell.dev/attempt"
"""On a Task: the last time its operation was begun, and what is known of the outcome, as JSON."""

ANNOTATION_MACHINE: Final = "ironbell.dev/machine"
"""On a Task: namespace/name of its Machine."""

ANNOTATION_CLAIM: Final = "ironbell.dev/bmc-job"
"""On a Machine: the Job that may use it, as namespace/name/uid; free if that Job has ended or is gone."""

ANNOTATION_ON_UNKNOWN: Final = "ironbell.dev/on-unknown-outcome"
"""On a Job (and its Tasks): `fail` (default) or `retry` when nobody knows whether a power cycle or reset happened."""

SECRET_KEY_CA: Final = "ca.crt"  # noqa: S105
"""Key of the certificate authority that signed a BMC's certificate, in the Secret with its password."""
