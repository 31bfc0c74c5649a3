"""Lookups of Hardware: found by any spelling, never served when two claim the same, forgotten when gone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell.hardware import Hardware, HardwareSpec
from ironbell.api.tinkerbell.interface import Dhcp, Interface, Ip
from ironbell.api.tinkerbell.metadata import HardwareMetadata, Instance
from ironbell.contract.servers.directory import Ambiguous, HardwareDirectory, Match, normal_mac


def hardware(name: str, *nics: tuple[str, str], agent_id: str = "", instance_id: str = "") -> Hardware:
    interfaces = [Interface(dhcp=Dhcp(mac=mac, ip=Ip(address=ip) if ip else None)) for mac, ip in nics]
    metadata = HardwareMetadata(instance=Instance(id=instance_id)) if instance_id else None
    return Hardware(
        metadata=ObjectMeta(name=name, namespace="site"),
        spec=HardwareSpec(interfaces=interfaces, agent_id=agent_id, metadata=metadata),
    )


def test_finds_by_every_attribute_in_any_spelling() -> None:
    directory = HardwareDirectory()
    one = hardware("one", ("52:54:00:aa:00:01", "192.0.2.10"), agent_id="agent-1", instance_id="i-1")
    directory.upsert(one)
    for mac in ("52:54:00:aa:00:01", "52-54-00-AA-00-01", "5254.00aa.0001", "525400AA0001"):
        assert directory.by_mac(mac) == Match(one, one.spec.interfaces[0])
    assert directory.by_ip("192.0.2.10") == Match(one, one.spec.interfaces[0])
    assert directory.by_agent_id("agent-1") == Match(one)
    assert directory.by_agent_id("52:54:00:aa:00:01") == Match(one, one.spec.interfaces[0])
    assert directory.by_instance_id("i-1") == Match(one)
    assert directory.by_mac("not a mac") is None
    assert directory.by_ip("") is None


def test_two_hardware_with_one_mac_are_reported_and_neither_is_served() -> None:
    directory = HardwareDirectory()
    one, two = hardware("one", ("52:54:00:aa:00:01", "192.0.2.10")), hardware("two", ("52:54:00:AA:00:01", ""))
    directory.upsert(one)
    directory.upsert(two)
    found = directory.by_mac("52:54:00:aa:00:01")
    assert isinstance(found, Ambiguous)
    assert found.names == ("site/one", "site/two")
    assert directory.conflicts_of(one) == [found]
    directory.remove("site", "two")
    assert directory.by_mac("52:54:00:aa:00:01") == Match(one, one.spec.interfaces[0])
    assert directory.conflicts_of(one) == []


def test_one_hardware_that_names_a_mac_twice_is_no_conflict() -> None:
    directory = HardwareDirectory()
    twice = hardware("one", ("52:54:00:aa:00:01", "192.0.2.1"), ("52:54:00:aa:00:01", "192.0.2.2"))
    directory.upsert(twice)
    assert directory.by_mac("52:54:00:aa:00:01") == Match(twice, twice.spec.interfaces[0])


macs = st.integers(0, 5).map(lambda n: f"52:54:00:00:00:0{n}")
changes = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.none() | st.lists(macs, max_size=3)), max_size=20)


@given(changes)
def test_agrees_with_a_scan_after_any_history(history: list[tuple[str, list[str] | None]]) -> None:
    directory = HardwareDirectory()
    truth: dict[str, Hardware] = {}
    for name, nics in history:
        if nics is None:
            truth.pop(name, None)
            directory.remove("site", name)
        else:
            truth[name] = hardware(name, *((mac, "") for mac in nics))
            directory.upsert(truth[name])
    for number in range(6):
        mac = f"52:54:00:00:00:0{number}"
        owners = {n for n, h in truth.items() if any(i.dhcp and i.dhcp.mac == mac for i in h.spec.interfaces)}
        found = directory.by_mac(mac)
        if isinstance(found, Match):
            assert owners == {found.hardware.metadata.name}
        elif found is None:
            assert owners == set()
        else:
            assert {f"site/{owner}" for owner in owners} == set(found.names)
            assert len(owners) > 1


@given(st.text(max_size=30))
def test_any_text_is_a_mac_or_none(text: str) -> None:
    assert normal_mac(text) == "" or len(normal_mac(text)) == 17
