"""Check sums that a template gives: `sha256:HEX`, or the bare hex digits of a known length."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from ironbell.agent.actions.context import ActionError, Context

_BY_LENGTH = {32: "md5", 40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}


class Checksum:
    """An expected digest, and the one of the data so far."""

    def __init__(self, name: str, text: str) -> None:
        algorithm, colon, digits = text.strip().lower().rpartition(":")
        if not colon:
            algorithm = _BY_LENGTH.get(len(digits), "")
        expected_length = {name: length for length, name in _BY_LENGTH.items()}.get(algorithm)
        if expected_length != len(digits) or any(digit not in "0123456789abcdef" for digit in digits):
            raise ActionError(f"{name} is {text!r}; write it as sha256:<64 hex digits> or sha512:<128 hex digits>")
        self._name = name
        self._algorithm = algorithm
        self._expected = digits
        self._hash = hashlib.new(algorithm, usedforsecurity=False)

    def over(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks, counted in."""
        for chunk in chunks:
            self._hash.update(chunk)
            yield chunk

    def verify(self, what: str) -> None:
        """Compare.

        Raises:
            ActionError: the data is not what the template's author meant.
        """
        if (found := self._hash.hexdigest()) != self._expected:
            raise ActionError(
                f"{what} has the check sum {self._algorithm}:{found}, {self._name} says "
                f"{self._algorithm}:{self._expected}: a damaged file, or another one than was meant"
            )


def expected(context: Context, name: str) -> Checksum | None:
    """The check sum in a variable; None where it is empty."""
    text = context.text(name)
    return Checksum(name, text) if text else None
