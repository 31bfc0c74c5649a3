"""Which driver serves a BMC's connection."""

from __future__ import annotations

import pytest

from ironbell.api.bmc.connection import Connection, IpmitoolOptions, ProviderOptions, RedfishOptions
from ironbell.contract.servers import bmc_service
from ironbell.contract.servers.bmc_service import DRIVERS, BmcDriver, service_of


def test_the_options_of_each_driver_are_a_field_of_the_connection() -> None:
    assert {driver.options for driver in DRIVERS} <= set(ProviderOptions.__struct_fields__)


def test_without_options_the_first_driver_serves_at_its_port() -> None:
    service = service_of(Connection(host="192.0.2.7"))
    assert (service.driver, service.port, service.system) == (DRIVERS[0], DRIVERS[0].port, "")


def test_the_port_and_the_system_of_the_options_are_used() -> None:
    options = ProviderOptions(redfish=RedfishOptions(port=8443, system_name="node-3"))
    service = service_of(Connection(host="192.0.2.7", provider_options=options))
    assert (service.port, service.system) == (8443, "node-3")


def test_the_first_driver_with_options_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bmc_service, "DRIVERS", (*DRIVERS, BmcDriver("ipmitool", "ipmitool", 623)))
    only_ipmi = ProviderOptions(ipmitool=IpmitoolOptions(port=6230))
    both = ProviderOptions(ipmitool=IpmitoolOptions(), redfish=RedfishOptions())
    served = [service_of(Connection(host="h", provider_options=options)) for options in (only_ipmi, both)]
    assert [(one.driver.name, one.port) for one in served] == [("ipmitool", 6230), ("gofish", 443)]
