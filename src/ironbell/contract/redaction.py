"""Text that came from a machine, made fit for conditions, Events and annotations: printable, bounded, without secrets.

What runs at a first boot prints tokens and keys, above all when it fails. What cannot be told apart from a secret goes
as well; digests of images stay, since failures to pull name them.
"""

from __future__ import annotations

import re
from typing import Final

from ironbell.base.printable import plain

HIDDEN: Final = "[redacted]"
_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL)
_NAMES: Final = "(?:token|password|passwd|secret|certificate-key|client-key-data|api-?key)"
_QUOTED: Final = r"\"[^\"\n]*\"?|'[^'\n]*'?"
# No pattern may look at the rest of a word from each place in it: a long word with many dashes would take seconds.
_FLAG: Final = re.compile(rf"(?i)((?<![\w-])(?>[\w-]*?--)[\w-]*{_NAMES}[ =]+)(?:{_QUOTED}|\S)\S*")
_FIELD: Final = re.compile(rf"(?i)({_NAMES}[\"']?\s*[:=]\s*)(?:{_QUOTED}|[^\s,;])[^\s,;]*")
_BOOTSTRAP_TOKEN: Final = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")
_BEARER: Final = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_JWT: Final = re.compile(r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?")
_USER_INFO: Final = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")
_HEX_KEY: Final = re.compile(r"(?<!sha256:)(?<![0-9a-fA-F])[0-9a-fA-F]{64}(?![0-9a-fA-F])")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{40,}=*")
_IN_BASE64: Final = (str.isupper, str.islower, str.isdigit)
READ: Final = 8192
"""How many characters of an output are looked at, from its end."""


def without_secrets(text: str) -> str:
    """The text with everything hidden that is a secret, or looks like one."""
    text = _PEM.sub(HIDDEN, text)
    for named in (_FLAG, _FIELD):
        text = named.sub(lambda match: f"{match[1]}{HIDDEN}", text)
    text = _BEARER.sub(lambda match: f"{match[1]} {HIDDEN}", text)
    for pattern in (_JWT, _BOOTSTRAP_TOKEN, _USER_INFO, _HEX_KEY):
        text = pattern.sub(HIDDEN, text)
    return _BASE64.sub(_key_or_path, text)


def _key_or_path(match: re.Match[str]) -> str:
    """Paths are long as well, but hardly ever have capitals, small letters and digits."""
    is_key = all(any(is_one(char) for char in match[0]) for is_one in _IN_BASE64)
    return HIDDEN if is_key else match[0]


def last_lines(text: str, *, lines: int, width: int) -> tuple[str, ...]:
    """The last lines of an output that are not empty, each at most so wide."""
    kept = [line.rstrip() for line in without_secrets(plain(text[-READ:])).split("\n") if line.strip()]
    return tuple(line if len(line) <= width else f"{line[: width - 1]}…" for line in kept[-lines:])
