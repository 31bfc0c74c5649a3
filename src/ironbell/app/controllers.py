"""The controllers of `core`, each with the identity that it writes under."""

from __future__ import annotations

from ironbell.apiserver.core import ApiServer
from ironbell.kube.runtime import Manager


def add_controllers(manager: Manager, server: ApiServer) -> None:
    """Add all controllers to the manager."""
