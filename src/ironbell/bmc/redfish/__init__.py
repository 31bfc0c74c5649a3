"""Redfish: HTTPS and JSON (DMTF DSP0266)."""

from ironbell.bmc.redfish.driver import RedfishDriver, RedfishTarget, connect

__all__ = ["RedfishDriver", "RedfishTarget", "connect"]
