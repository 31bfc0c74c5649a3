"""What a pivot writes on objects, and what it writes down about itself.

All of it is in the APIs: a run that is killed leaves nothing that the next one would miss.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.names import ANNOTATION_PAUSED
from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED
from ironbell.contract.paused import ANNOTATION_PIVOT_PAUSED

JOURNAL: Final = "ironbell-pivot"
"""ConfigMap on both sides, and Lease on the target."""
JOURNAL_NAMESPACE: Final = "kube-system"
JOURNAL_KEY: Final = "pivot.json"

LABEL_COPY: Final = "ironbell.dev/pivot"
"""On a copy until the pivot ends: which pivot made it."""
ANNOTATION_SOURCE: Final = "ironbell.dev/pivot-source"
"""On a copy until the pivot ends: uid of what it is a copy of."""
ANNOTATION_KEPT: Final = "ironbell.dev/pivot-kept"
"""On a copy until the pivot ends: what it is a copy of stays, because others need it."""
ANNOTATION_MANAGERS: Final = "ironbell.dev/pivot-managed-fields"
"""On a copy until the pivot ends: the source's record of who owns which field, as JSON."""
MARKS: Final = (ANNOTATION_SOURCE, ANNOTATION_KEPT, ANNOTATION_PIVOT_PAUSED, ANNOTATION_MANAGERS)

MANAGER: Final = "ironbell-pivot"
"""The owner of what is written, in managedFields."""

REASON: Final = "moves to another management cluster"


def pause_annotation(group: str) -> str:
    """What makes the controllers of a group leave an object alone."""
    return ANNOTATION_DISABLED if group.endswith("tinkerbell.org") else ANNOTATION_PAUSED
