"""Names of container images, as a workflow's actions give them.

Source: distribution/reference: normalize.go (ParseNormalizedNamed), regexp.go.
"""

from __future__ import annotations

import re

_MAX_NAME = 255
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"(?P<name>{_DOMAIN}/{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?"
)
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")


def image_problem(image: str) -> str:
    """Why a text is no image name; empty when it is one. Short names such as `reboot` are."""
    if _IDENTIFIER.fullmatch(image):
        return "a bare digest is no name"
    first, slash, rest = image.partition("/")
    is_domain = bool(slash) and (any(c in first for c in ".:") or first == "localhost" or first != first.lower())
    domain, remainder = (first, rest) if is_domain else ("docker.io", image)
    if not is_domain and "/" not in remainder:
        remainder = f"library/{remainder}"
    repository = remainder.partition("@")[0].partition(":")[0]
    if repository != repository.lower():
        return "the repository name must be lower case"
    match = _REFERENCE.fullmatch(f"{domain}/{remainder}")
    if match is None:
        return "invalid reference format"
    if len(match["name"]) - len(domain) - 1 > _MAX_NAME:
        return f"the repository name is longer than {_MAX_NAME} characters"
    return ""
