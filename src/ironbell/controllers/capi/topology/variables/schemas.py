"""What this package needs of JSON schemas: values filled in and checked. The machinery is handed in.

Embedded API and controllers are apart; whoever puts them together gives this package the API's own schemas.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from ironbell.contract.admission import FieldProblem
from ironbell.kube.decision import Fields

UNSET: Final = object()
"""No old value."""


class ValueSchema(Protocol):
    """The schema of one variable."""

    def default(self, value: Any) -> Any:
        """The value with defaults below it; for `UNSET` the schema's own default, `UNSET` if it has none."""
        ...

    def problems(self, value: Any, old: Any, path: str) -> list[FieldProblem]:
        """What is wrong with a value at a path: its structure, fields that nobody knows, rules."""
        ...


class Schemas(Protocol):
    """Reads schemas as classes have them (`openAPIV3Schema`)."""

    def compiled(self, schema: Fields) -> ValueSchema:
        """The schema of values, ready to be used. The same schema may be asked for often."""
        ...

    def problems(self, schema: Fields, path: str) -> list[FieldProblem]:
        """What is wrong with the schema itself."""
        ...
