"""A Redfish service for these tests."""

from __future__ import annotations

from support.network.redfish import service

__all__ = ["service"]
