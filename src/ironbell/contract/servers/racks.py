"""Limits that the servers of a rack share."""

from __future__ import annotations

from typing import Final

INSTALLS_PER_RACK: Final = 16
"""Servers that are powered on and installed at once: what a rack's switch brings in is shared by them, as is the power
that they take when they start."""
