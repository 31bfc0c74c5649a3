"""Which machines are known by their token and which by their address, and what counts as an address."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.template import TEMPLATE, Template
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.servers import identity
from ironbell.contract.servers.boot_token import BOOT_FOR, Identity, Mint, Record, annotation, boot_for, decide, minted
from ironbell.contract.servers.identity import IDENTITY, SUPERSEDED, Way, networks

NOW = parse_rfc3339("2026-11-22T12:00:00Z")
BOOTED = annotation(minted(Mint("wf"), "ab" * 32, now="2026-11-22T12:00:00Z"))


def a_template(text: str = "tasks: []", **annotations: str) -> Template:
    metadata = {"name": "t", "namespace": "ns", "annotations": annotations}
    return TEMPLATE.decode(msgspec.json.encode({"metadata": metadata, "spec": {"data": text}}))


def a_workflow(said: str | None = None, uid: str = "wf") -> Workflow:
    annotations = {} if said is None else {IDENTITY: said}
    metadata = {"name": "w", "namespace": "ns", "uid": uid, "annotations": annotations}
    return WORKFLOW.decode(msgspec.json.encode({"metadata": metadata}))


def a_hardware(*addresses: str, annotations: dict[str, str] | None = None, ipxe: Any = None) -> Hardware:
    interfaces = [{"dhcp": {"mac": f"02:00:00:00:00:0{n}", "ip": {"address": a}}} for n, a in enumerate(addresses)]
    interfaces.append({"netboot": {"allowPXE": True, **({"ipxe": ipxe} if ipxe else {})}})  # type: ignore[dict-item]
    metadata = {"name": "m1", "namespace": "ns", "annotations": annotations or {}}
    return HARDWARE.decode(msgspec.json.encode({"metadata": metadata, "spec": {"interfaces": interfaces}}))


def test_a_template_of_upstreams_says_nothing_and_ours_say_strict() -> None:
    assert identity.of_template(a_template("image: quay.io/tinkerbell/actions/image2disk")) == ""
    assert identity.of_template(a_template(**{IDENTITY: "strict"})) == "strict"
    assert identity.of_template(a_template("url: http://x/t/@IRONBELL_METADATA_TOKEN@")) == "strict"
    assert identity.of_template(a_template("url: /t/@IRONBELL_METADATA_TOKEN@", **{IDENTITY: "address"})) == "address"


@pytest.mark.parametrize(
    ("said", "own"), [(None, False), ("", False), ("address", False), ("strict", True), ("stricct", True)]
)
def test_the_site_says_for_all_and_own_says_for_those_that_are_marked(said: str | None, own: bool) -> None:
    workflow = a_workflow(said)
    assert identity.needs_token(workflow, Identity.OWN) is own
    assert identity.needs_token(workflow, Identity.STRICT)
    assert not identity.needs_token(workflow, Identity.COMPAT)
    wanted = a_hardware(annotations={BOOT_FOR: boot_for("wf", NOW, identity.boot_mark(workflow))})
    asked = decide(wanted, peer="192.0.2.66", now="2026-11-22T12:00:01Z", marked_only=True)
    assert asked == (Mint("wf", "2026-11-22T12:00:00Z") if own else None)
    assert decide(wanted, peer="192.0.2.66", now="") == Mint("wf", "2026-11-22T12:00:00Z"), "a strict site asks nothing"


def test_a_boot_without_a_script_of_ours_can_have_no_token() -> None:
    assert identity.gets_token(a_hardware(), toggles=True)
    assert identity.gets_token(a_hardware(), toggles=True, mode="netboot")
    assert not identity.gets_token(a_hardware(), toggles=False)
    assert not identity.gets_token(a_hardware(), toggles=True, mode="isoboot")
    assert not identity.gets_token(a_hardware(), toggles=True, mode="customboot")
    for ipxe in ({"url": "http://mine"}, {"contents": "#!ipxe"}):
        assert not identity.gets_token(a_hardware(ipxe=ipxe), toggles=True)
    assert identity.gets_token(a_hardware(ipxe={"binary": "snp.efi"}), toggles=True)


def test_metadata_needs_the_token_of_the_last_boot_until_another_workflow_has_begun() -> None:
    def needed(annotations: dict[str, str], site: Identity = Identity.OWN) -> bool:
        return identity.metadata_needs_token(a_hardware(annotations=annotations), site)

    assert not needed({})
    assert needed({BOOT_FOR: boot_for("wf", NOW, "strict")}), "who is there before it boots is told nothing"
    assert not needed({BOOT_FOR: boot_for("wf", NOW)})
    assert needed(BOOTED)
    assert needed(annotation(Record(boot="wf", revoked="asked twice"))), "a revoked one opens nothing to the address"
    assert not needed({**BOOTED, SUPERSEDED: "wf"})
    assert needed({**BOOTED, SUPERSEDED: "earlier"})
    assert needed({}, Identity.STRICT)
    assert not needed(BOOTED, Identity.COMPAT)

    here = a_hardware(annotations=BOOTED)
    assert identity.supersedes(a_workflow(uid="next"), here) == {SUPERSEDED: "wf"}
    assert identity.supersedes(a_workflow("strict", uid="next"), here) == {}
    assert identity.supersedes(a_workflow(uid="wf"), here) == {}, "at a strict site its boot had the token"
    assert identity.supersedes(a_workflow(uid="next"), a_hardware()) == {}
    done = a_hardware(annotations={**BOOTED, SUPERSEDED: "wf"})
    assert identity.supersedes(a_workflow(uid="next"), done) == {}


def test_addresses_are_compared_where_there_are_some_and_nobody_speaks_for_others() -> None:
    two, proxies = a_hardware("192.0.2.10", "2001:DB8::0010"), networks(["10.0.0.0/8", "2001:db8:1::/64"])
    for peer in ("192.0.2.10", "::ffff:192.0.2.10", "2001:db8::10"):
        assert identity.address_objection(two, peer, proxies) is None
        assert identity.way(two, peer, proxies) is Way.ADDRESS
    for peer in ("192.0.2.11", "2001:db8::11", "unknown", ""):
        why = identity.address_objection(two, peer, proxies)
        assert why is not None
        assert "Hardware m1 has 192.0.2.10, 2001:db8::10" in why
    for peer in ("10.1.2.3", "::ffff:10.1.2.3", "2001:db8:1::5"):
        assert identity.address_objection(two, peer, proxies) is None
        assert identity.way(two, peer, proxies) is Way.PROXY
    for hardware in (None, a_hardware(), a_hardware("")):
        assert identity.address_objection(hardware, "192.0.2.66", proxies) is None
        assert identity.way(hardware, "192.0.2.66", proxies) is Way.UNKNOWN_ADDRESS


def test_only_a_trusted_proxy_is_believed_for_whom_it_asks() -> None:
    proxies = networks(["10.0.0.1"])
    assert identity.forwarded_for("192.0.2.66", "192.0.2.10", proxies) == "192.0.2.66"
    assert identity.forwarded_for("192.0.2.66", "192.0.2.10", ()) == "192.0.2.66"
    assert identity.forwarded_for("10.0.0.1", "192.0.2.10", proxies) == "192.0.2.10"
    assert identity.forwarded_for("10.0.0.1", "192.0.2.99, 192.0.2.10, 10.0.0.1", proxies) == "192.0.2.10"
    assert identity.forwarded_for("10.0.0.1", "", proxies) == "10.0.0.1"
    assert identity.forwarded_for("10.0.0.1", "10.0.0.1", proxies) == "10.0.0.1"
    with pytest.raises(ValueError, match="here"):
        networks(["here"])
