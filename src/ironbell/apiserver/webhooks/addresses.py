"""Problems in the address of a webhook: of admission, or of a definition that converts between its versions.

Source: kubernetes/apiserver: pkg/util/webhook/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from ironbell.apiserver.fielderrors import FieldError, invalid, required
from ironbell.apiserver.metadata import name_fault
from ironbell.base.ports import HTTPS_PORT

_FORM = "; desired format: https://host[/path]"


def client_faults(config: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Errors in the address of a webhook."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_faults(url, f"{path}.url")
    elif service is not None:
        yield from _service_faults(service, f"{path}.service")


def _url_faults(url: str, path: str) -> Iterator[FieldError]:
    try:
        parts = urlsplit(url)
        host, user = parts.netloc, parts.username
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not host:
        yield invalid(path, "", f"host must be specified{_FORM}")
    if user is not None:
        yield invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _service_faults(service: dict[str, Any], path: str) -> Iterator[FieldError]:
    for field in ("name", "namespace"):
        if not service.get(field):
            yield required(f"{path}.{field}")
    port = service.get("port", HTTPS_PORT)
    if not 1 <= port <= 65535:
        yield invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    target = service.get("path") or ""
    if target in ("", "/"):
        return
    if not target.startswith("/"):
        yield invalid(f"{path}.path", target, "must start with a '/'")
    for index, step in enumerate(target[1:].removesuffix("/").split("/")):
        if not step:
            yield invalid(f"{path}.path", target, f"segment[{index}] may not be empty")
        elif fault := name_fault(step):
            yield invalid(f"{path}.path", target, f"segment[{index}]: {fault}")
