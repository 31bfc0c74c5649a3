"""The servers of a fleet: alike each time, no two with the same name or address, several of everything."""

from __future__ import annotations

import pytest

from ironbell.lab.fleet.catalogue import MODELS, MOST, FleetError, fleet, hardware


def test_no_two_are_alike() -> None:
    servers = fleet(700)
    for attribute in ("name", "mac", "uuid", "serial", "address", "bmc_address"):
        assert len({getattr(server, attribute) for server in servers}) == 700
    serials = [disk.serial for server in servers for disk in server.disks]
    assert len(set(serials)) == len(serials)


def test_a_fleet_that_grows_keeps_its_servers() -> None:
    assert fleet(10)[:4] == fleet(4)


def test_three_servers_stand_in_three_racks_and_every_make_is_in_every_rack() -> None:
    assert {server.rack for server in fleet(3)} == {"rack-1", "rack-2", "rack-3"}
    servers = fleet(120)
    for rack in {server.rack for server in servers}:
        found = [server for server in servers if server.rack == rack]
        assert len(found) == 20
        assert {server.model for server in found} == set(MODELS)


def test_the_instance_id_is_the_agents_id_as_upstreams_provider_needs_it() -> None:
    (server,) = fleet(1)
    spec = hardware(server, "default")["spec"]
    assert spec["metadata"]["instance"]["id"] == spec["interfaces"][0]["dhcp"]["mac"] == server.mac


@pytest.mark.parametrize("count", [0, -1, MOST + 1])
def test_a_number_that_cannot_be(count: int) -> None:
    with pytest.raises(FleetError, match=r"simulate: .* there can be 1 to"):
        fleet(count)
