"""Names of container images, as a workflow's actions give them.

Source: distribution/reference: normalize.go (ParseNormalizedNamed), regexp.go, reference.go (Parse);
opencontainers/go-digest: digest.go.
"""

from __future__ import annotations

import re
from typing import Final

_MAX_CHARS = 2048
_MAX_PATH = 255
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?"
_PATH = rf"{_COMPONENT}(?:/{_COMPONENT})*"
# A first component that is not a host name may still be the beginning of the path.
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_PATH})"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<algorithm>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*):(?P<digest>[0-9a-fA-F]{32,}))?"
)
_NAME = re.compile(rf"(?:{_DOMAIN}/)?(?P<path>{_PATH})")
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")
_DIGEST_DIGITS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}


def image_problem(image: str) -> str:
    """Return why a text is not a valid image name; empty if it is. Short names such as `reboot` are."""
    if len(image) > _MAX_CHARS:
        return f"longer than {_MAX_CHARS} characters"
    if _IDENTIFIER.fullmatch(image):
        return "a bare digest is not a name"
    domain, path = _split(image)
    if path.partition(":")[0] != path.partition(":")[0].lower():
        return "the repository name must be lower case"
    match = _REFERENCE.fullmatch(f"{domain}/{path}")
    name = _NAME.fullmatch(match["name"]) if match is not None else None
    if match is None or name is None:
        return "invalid reference format"
    if len(name["path"]) > _MAX_PATH:
        return f"the repository name is longer than {_MAX_PATH} characters"
    return _digest_problem(match["algorithm"], match["digest"])


def _split(image: str) -> tuple[str, str]:
    """The registry's host and the rest, with what a short name leaves out."""
    first, slash, rest = image.partition("/")
    if not slash:
        return "docker.io", f"library/{image}"
    if first == "index.docker.io":
        first = "docker.io"
    elif first != "localhost" and not (set(first) & set(".:")) and first == first.lower():
        return "docker.io", image
    if first == "docker.io" and "/" not in rest:
        return first, f"library/{rest}"
    return first, rest


def _digest_problem(algorithm: str | None, digits: str | None) -> str:
    if algorithm is None or digits is None:
        return ""
    if algorithm not in _DIGEST_DIGITS:
        return "the digest's algorithm must be sha256, sha384 or sha512"
    if len(digits) != _DIGEST_DIGITS[algorithm] or digits != digits.lower():
        return f"a {algorithm} digest has {_DIGEST_DIGITS[algorithm]} lower-case hexadecimal digits"
    return ""
