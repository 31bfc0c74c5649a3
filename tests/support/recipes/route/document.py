"""The labels of a Hardware as text. Pure."""

from __future__ import annotations

from ironbell.api.tinkerbell.hardware import Hardware


def document(hardware: Hardware) -> str:
    """Return one `NAME=VALUE` a line, in the order of the names."""
    return "".join(f"{name}={value}\n" for name, value in sorted(hardware.metadata.labels.items()))
