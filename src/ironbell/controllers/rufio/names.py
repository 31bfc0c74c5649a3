"""Names that the BMC controllers put on objects, besides those of `api.tinkerbell.names`."""

from __future__ import annotations

from typing import Final

ANNOTATION_ATTEMPT: Final = "ironbell.dev/attempt"
"""On a Task: the last attempt at its operation and its outcome, as JSON."""

ANNOTATION_MACHINE: Final = "ironbell.dev/machine"
"""On a Task: namespace/name of its Machine."""

ANNOTATION_CLAIM: Final = "ironbell.dev/bmc-job"
"""On a Machine: the Job that uses it, as namespace/name/uid; ignored once the Job has finished or was deleted."""

ANNOTATION_ON_UNKNOWN: Final = "ironbell.dev/on-unknown-outcome"
"""On a Job (and its Tasks): `fail` (default) or `retry`, if the outcome of a power cycle or reset is unknown."""

SECRET_KEY_CA: Final = "ca.crt"  # noqa: S105
"""Key of the certificate authority that signed a BMC's certificate, in the Secret with the BMC's password."""
