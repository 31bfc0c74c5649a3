"""Checksums in a template: `sha256:HEX`, or the bare hex digits of a known length."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from ironbell.agent.actions.context import ActionError, Context

_BY_LENGTH = {32: "md5", 40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}


class Checksum:
    """An expected digest, and that of the data so far."""

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
        """Yield the same chunks, and include them in the digest."""
        for chunk in chunks:
            self._hash.update(chunk)
            yield chunk

    def verify(self, subject: str) -> None:
        """Compare the digests.

        Raises:
            ActionError: the data does not have the expected digest.
        """
        if (actual := self._hash.hexdigest()) != self._expected:
            raise ActionError(
                f"{subject} has the checksum {self._algorithm}:{actual}, but {self._name} specifies "
                f"{self._algorithm}:{self._expected}: the file is damaged, or is another one"
            )


def expected(context: Context, name: str) -> Checksum | None:
    """The checksum in a variable; None if it is empty."""
    text = context.text(name)
    return Checksum(name, text) if text else None
