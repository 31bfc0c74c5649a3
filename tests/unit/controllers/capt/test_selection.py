"""Which server a machine gets."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.bmc import MACHINE
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.base.labels import SelectorError
from ironbell.contract.servers.claim import HELD, Claimant, claim_of, claim_patch, release
from ironbell.controllers.capt.host import wish
from ironbell.operations.why.candidates import as_objects, evaluate
from ironbell.provisioner.health import INSTALL_FAILED, Obstacle, Severity, own_severity
from ironbell.provisioner.lifecycle.selection import obstacles, pick, shortage, verdict, verdicts
from support.servers import captworld
from support.servers.captworld import machine, wanted

OWNER = {"v1alpha1.tinkerbell.org/ownerName": "other", "v1alpha1.tinkerbell.org/ownerNamespace": "default"}


BMC = {"bmcRef": {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "bmc"}}


def server(name: str, **changes: Any) -> Any:
    """A server that nothing speaks against: it has a BMC."""
    return captworld.server(name, **{**changes, "spec": {**BMC, **changes.get("spec", {})}})


def chosen(spec: dict[str, Any], *servers: Any, place: int = 0, **more: str) -> str | None:
    ordered = sorted(servers, key=lambda one: (own_severity(one), one.key))
    found = pick(wish(wanted(**spec), **more), ordered, place)
    return found.metadata.name if found else None


def term(**labels: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": labels}}


def liked(weight: int, **labels: str) -> dict[str, Any]:
    return {"weight": weight, "hardwareAffinityTerm": term(**labels)}


def test_any_free_server_in_order_of_namespace_and_name() -> None:
    servers = [server("b"), server("a", namespace="z"), server("a"), server("c", namespace="a", labels=OWNER)]
    assert chosen({}, *servers) == "a"
    assert chosen({}, *servers, place=1) == "b"
    assert chosen({}, *servers, place=2) == "a"
    assert chosen({}, *servers, place=3) is None


@pytest.mark.parametrize("record", [{"spec": BMC}, {}, {"annotations": {INSTALL_FAILED: "{}"}}])
def test_no_more_servers_are_looked_at_than_it_takes(record: dict[str, Any]) -> None:
    """Also where nothing has a BMC, so that the same speaks against all."""
    servers = iter([captworld.server(f"s{number}", **record) for number in range(9)])
    found = pick(wish(wanted()), servers, 2)
    assert found is not None
    assert found.metadata.name == "s2"
    assert len(list(servers)) == 6


def test_required_terms_are_alternatives() -> None:
    spec = {"hardwareAffinity": {"required": [term(rack="none"), term(rack="baz")]}}
    assert chosen(spec, server("a", labels={"rack": "bar"}), server("b", labels={"rack": "baz"})) == "b"


def test_weights_are_added() -> None:
    spec = {"hardwareAffinity": {"preferred": [liked(50, fast="yes"), liked(40, near="yes"), liked(80, big="yes")]}}
    assert chosen(spec, server("a", labels={"big": "yes"}), server("b", labels={"fast": "yes", "near": "yes"})) == "b"


def test_upstreams_example_of_weights() -> None:
    spec = {"hardwareAffinity": {"preferred": [liked(12, k="foo"), liked(10, k="bar"), liked(11, k="baz")]}}
    assert chosen(spec, *(server(name, labels={"k": name}) for name in ("bar", "baz", "foo"))) == "foo"


def test_a_selector_that_is_none_is_an_error() -> None:
    spec = {"required": [{"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]}
    with pytest.raises(SelectorError, match="Near"):
        wish(wanted(hardwareAffinity=spec))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"labels": OWNER}, "it belongs to TinkerbellMachine default/other"),
        ({"deleting": True, "finalizers": ["x"]}, "it is being deleted"),
        ({"annotations": {HELD: "broken fan"}}, "broken fan"),
        ({"spec": {"interfaces": []}}, "spec.interfaces is empty"),
        ({"spec": {"interfaces": [{"dhcp": {"mac": "02:00:00:00:00:01"}}]}}, "spec.interfaces[0].dhcp.ip.address"),
        ({"spec": {"interfaces": [{"dhcp": {"ip": {"address": "x"}}}]}}, "'x' is not a valid IP address"),
        ({"spec": {"disks": []}}, "spec.disks[0].device is empty"),
        ({"spec": {"metadata": None}}, "spec.metadata.instance.id is empty"),
        (
            {"spec": {"interfaces": [{"dhcp": {"ip": {"address": "192.0.2.1"}}, "netboot": {"allowWorkflow": False}}]}},
            "spec.interfaces[].netboot.allowWorkflow is false",
        ),
        ({"status": {"state": "Error"}}, "status.state is Error: see its annotations"),
        ({"status": {"state": "Error"}, "annotations": {"ironbell.dev/error": "two of them"}}, "is Error: two of them"),
    ],
)
def test_what_rules_a_server_out_is_said(changes: dict[str, Any], says: str) -> None:
    found = verdict(wish(wanted()), server("a", **changes))
    assert not found.fits
    assert any(says in problem.message for problem in found.problems)


SAW_SDA = {ANNOTATION_AGENT_ATTRIBUTES: '{"blockDevices":[{"name":"sda","size":"1TB"}]}'}
FAILED_WIPE = {"ironbell.dev/wiped": '{"machine":"default/old","wiped":false,"failed":true,"message":"sda: I/O error"}'}
FAILED_TWICE = {"ironbell.dev/install-failed": '{"machine":"default/old","times":2,"message":"no space"}'}
DISKS = {"disks": [{"device": "/dev/sda"}, {"device": "/dev/sdb"}]}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"annotations": FAILED_WIPE}, "its last wipe failed, after default/old: sda: I/O error"),
        ({"annotations": FAILED_TWICE}, "2 installations failed on it, for default/old: no space"),
        ({"annotations": SAW_SDA, "spec": DISKS}, "its inventory lacks disk /dev/sdb of spec.disks"),
        (
            {
                "spec": {"disks": [{"device": "/dev/disk/by-id/a"}, {"device": "/dev/disk/by-id/b"}]},
                "status": {"attributes": {"outOfBand": {"blockDevices": [{"name": "Bay 0", "sizeBytes": 1}]}}},
            },
            "its inventory lists 1 of the 2 disks of spec.disks",
        ),
    ],
)
def test_a_server_that_something_speaks_against_is_claimed_last(changes: dict[str, Any], says: str) -> None:
    sick = server("a", labels={"fast": "yes"}, **changes)
    prefers = {"hardwareAffinity": {"preferred": [liked(50, fast="yes")]}}
    for spec in ({}, prefers):
        assert chosen(spec, sick, server("b")) == "b"
        assert chosen(spec, sick, server("b"), place=1) == "a", "rather than none"
    found = verdict(wish(wanted()), sick)
    assert found.fits
    assert found.concerns == (says,)
    assert as_objects(evaluate(machine(), [sick, server("b")]))[1]["status"]["state"] == (
        f"fits, score 0; claimed only if no better server fits: {says}"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {
            "annotations": {
                "ironbell.dev/wiped": '{"machine":"default/old","wiped":false,"message":"nothing was installed"}'
            }
        },
        {"annotations": SAW_SDA},
        {"annotations": SAW_SDA, "spec": {"disks": [{"device": "/dev/disk/by-id/x"}]}},
        {"annotations": {"ironbell.dev/wiped": "no JSON"}},
        {"spec": DISKS},
    ],
)
def test_nothing_speaks_against_a_server_without_evidence(changes: dict[str, Any]) -> None:
    assert verdict(wish(wanted()), server("a", **changes)).severity == Severity.NONE


def test_a_bmc_that_does_not_answer_rules_its_server_out() -> None:
    behind = {"bmcRef": {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "bmc-a"}}
    condition = {"type": "Contactable", "status": "False", "message": "BMCAuthenticationFailed: wrong password"}
    silent = MACHINE.convert(
        {"metadata": {"namespace": "default", "name": "bmc-a"}, "status": {"conditions": [condition]}}
    )
    found = verdict(wish(wanted()), server("a", spec=behind), {silent.key: silent})
    assert tuple(map(str, found.problems)) == (
        "its BMC bmc-a does not answer: BMCAuthenticationFailed: wrong password",
    )
    told = shortage([found, verdict(wish(wanted()), server("b", spec=behind), {silent.key: silent})], 0)
    assert told == "none of 2 Hardware fits: 2: its BMC does not answer"
    assert shortage([found], 0) == (
        "none of 1 Hardware fits: 1: its BMC does not answer (bmc-a: BMCAuthenticationFailed: wrong password)"
    )
    assert verdict(wish(wanted()), server("a", spec=behind)).fits


def test_a_server_without_bmc_is_claimed_after_those_that_boot_by_themselves() -> None:
    by_hand = captworld.server("a", labels={"fast": "yes"})
    prefers = {"hardwareAffinity": {"preferred": [liked(50, fast="yes")]}}
    for spec in ({}, prefers):
        assert chosen(spec, by_hand, server("b")) == "b"
    assert chosen({}, by_hand, server("b", annotations=FAILED_WIPE)) == "a"
    assert as_objects(evaluate(machine(), [by_hand]))[0]["status"]["state"] == (
        "fits, score 0; claimed only if no better server fits: it has no BMC: somebody must power it on and boot it "
        "over the network"
    )


def test_failure_domains() -> None:
    servers = [server("a", labels={"rack": "r1"}), server("b", labels={"rack": "r2"}), server("c")]
    assert chosen({}, *servers, failure_domain_label="rack", failure_domain="r2") == "b"
    assert chosen({}, *servers, failure_domain_label="rack") == "a"
    told = verdict(wish(wanted(), failure_domain_label="rack", failure_domain="r2"), servers[2]).problems
    assert [problem.message for problem in told] == ["it is without label rack, not in 'r2'"]


INVENTORY = {
    "cpu": {"totalCores": 16},
    "memory": {"total": "64GB"},
    "product": {"name": "NUC10i7FNH", "vendor": "Intel(R) Client Systems", "serialNumber": "S1"},
    "blockDevices": [{"name": "nvme0n1", "size": "477GB"}, {"name": "sda", "size": "1TB"}],
    "networkInterfaces": [{"name": "eth0", "mac": "02:00:00:00:00:01", "speed": "10000Mb/s"}],
}


@pytest.mark.parametrize(
    ("requirements", "says"),
    [
        ({"cpuCores": 16, "memory": "64Gi", "nicSpeed": "10G", "model": "nuc*", "vendor": "intel*"}, ""),
        ({"architecture": "amd64", "disks": {"count": 2, "size": "400G"}}, ""),
        ({"cpuCores": 17}, "cpuCores is 16, less than 17"),
        ({"memory": "65Gi"}, "less than 65Gi"),
        ({"nicSpeed": "25G"}, "less than 25G"),
        ({"model": "nuc"}, "model is 'NUC10i7FNH', not 'nuc'"),
        ({"vendor": "[i]ntel*"}, "not '[i]ntel*'"),
        ({"architecture": "arm64"}, "architecture is 'amd64', not 'arm64'"),
        ({"disks": {"count": 2, "size": "500Gi"}}, "disks: it has 1 of at least 500Gi, and 2 are required"),
    ],
)
def test_requirements_by_inventory(requirements: dict[str, Any], says: str) -> None:
    report = {ANNOTATION_AGENT_ATTRIBUTES: msgspec.json.encode(INVENTORY).decode()}
    problems = verdict(wish(wanted(hardwareRequirements=requirements)), server("a", annotations=report)).problems
    assert (says in "; ".join(map(str, problems))) if says else not problems


def test_a_reason_is_counted_by_its_kind_whatever_a_report_contains() -> None:
    """The vendor is what the machine reports; in it stands what our own sentence about a number has."""
    report = {ANNOTATION_AGENT_ATTRIBUTES: '{"product":{"vendor":"No, less than none"},"cpu":{"totalCores":2}}'}
    servers = [server(name, annotations=report) for name in "ab"]
    by_vendor = shortage(verdicts(wish(wanted(hardwareRequirements={"vendor": "dell*"})), servers), 0)
    assert by_vendor == "none of 2 Hardware fits: 2: vendor is 'No, less than none', not 'dell*'"
    by_number = shortage(verdicts(wish(wanted(hardwareRequirements={"cpuCores": 4})), servers), 0)
    assert by_number == "none of 2 Hardware fits: 2: cpuCores is less than 4"


def test_what_is_not_known_satisfies_nothing() -> None:
    for requirements in ({"cpuCores": 1}, {"memory": 1}, {"vendor": "*"}, {"disks": {}}, {"nicSpeed": "1k"}):
        problems = verdict(wish(wanted(hardwareRequirements=requirements)), server("a")).problems
        assert any("not known" in problem.message for problem in problems), requirements


def test_the_bmcs_inventory_fills_what_the_agent_did_not_say() -> None:
    bmc = {"cpu": {"totalCores": 8}, "memory": {"totalBytes": 2**35}, "product": {"vendor": "Dell Inc."}}
    report = {ANNOTATION_AGENT_ATTRIBUTES: '{"cpu":{"totalCores":16}}'}
    has = server("a", annotations=report, status={"attributes": {"outOfBand": bmc}})
    assert not verdict(
        wish(wanted(hardwareRequirements={"cpuCores": 16, "memory": "32Gi", "vendor": "dell*"})), has
    ).problems
    assert verdict(wish(wanted(hardwareRequirements={"memory": "33Gi"})), has).problems


@given(st.text())
def test_any_report_is_read(text: str) -> None:
    verdict(
        wish(wanted(hardwareRequirements={"cpuCores": 1})), server("a", annotations={ANNOTATION_AGENT_ATTRIBUTES: text})
    )


def test_a_shortage_is_told_by_its_commonest_reasons() -> None:
    servers = [server(f"t{number}", labels=OWNER) for number in range(3)] + [server("h", annotations={HELD: "x"})]
    told = shortage(verdicts(wish(wanted()), servers), 0)
    assert told.startswith("none of 4 Hardware fits: 3: claimed by others; 1: it is held")
    assert shortage([], 0) == "there is no Hardware"
    assert shortage([], 0, 12) == "all 12 Hardware are claimed"
    assert shortage(verdicts(wish(wanted()), [server("h", annotations={HELD: "x"})]), 0, 11).startswith(
        "none of 12 Hardware fits: 11: claimed by others; 1: it is held"
    )
    assert shortage(verdicts(wish(wanted()), [server("a")]), 1).startswith(
        "1 of 1 Hardware fits, and 1 earlier machine "
    )


def test_the_obstacles_are_those_of_the_commonest_reasons() -> None:
    held = [server(f"h{number}", annotations={HELD: "x"}) for number in range(2)]
    claimed = [server(f"t{number}", labels=OWNER) for number in range(3)]
    assert obstacles(verdicts(wish(wanted()), [*held, *claimed])) == [None, Obstacle.HELD]
    assert obstacles(verdicts(wish(wanted()), [*held, *claimed, server("a")])) == []
    assert obstacles([]) == []


def test_servers_that_are_held_for_reasons_of_their_own_are_counted_together() -> None:
    def held(*reasons: str) -> str:
        servers = [server(f"h{number}", annotations={HELD: why}) for number, why in enumerate(reasons)]
        return shortage(verdicts(wish(wanted()), servers), 0)

    hold = "it is held (ironbell.dev/hold"
    assert held("not wiped after a", "not wiped after b") == f"none of 2 Hardware fits: 2: {hold})"
    assert held("smoke", "smoke") == f"none of 2 Hardware fits: 2: {hold}: smoke)"


def test_reasons_that_are_not_named_are_counted() -> None:
    servers = [server(name, labels=OWNER) for name in "ab"]
    servers += [server("c", status={"state": "Error"}), server("d", annotations={HELD: "x"}), server("e"), server("f")]
    told = shortage(verdicts(wish(wanted(hardwareRequirements={"cpuCores": 1})), servers), 0)
    assert told.count(";") == 3
    assert told.endswith("; 1: another reason")
    assert shortage(verdicts(wish(wanted(hardwareRequirements={"cpuCores": 1})), servers[:4]), 0).count(";") == 2


def test_the_claim_is_one_locked_write_and_takes_off_what_a_former_owner_left() -> None:
    hardware = server("a", annotations={"v1alpha1.tinkerbell.org/provisioned": "true"}, finalizers=["keep"])
    write = claim_patch(hardware, Claimant("TinkerbellMachine", "default", "m", "uid-m"), since="2026-01-01T00:00:00Z")
    assert write.resource_version == "1"
    metadata = write.body["metadata"]
    assert metadata["annotations"]["v1alpha1.tinkerbell.org/provisioned"] is None
    assert metadata["finalizers"] == ["keep", "infrastructure.cluster.x-k8s.io/tinkerbellmachine"]
    taken = server("a", labels=metadata["labels"], annotations={k: v for k, v in metadata["annotations"].items() if v})
    claim = claim_of(taken)
    assert claim is not None
    assert claim.is_of(Claimant("TinkerbellMachine", "default", "m", "uid-m"))
    assert not claim.is_of(Claimant("TinkerbellMachine", "default", "m", "uid-of-a-later-one"))
    assert claim.is_of_name(Claimant("TinkerbellMachine", "default", "m", "uid-of-a-later-one"))
    assert not claim.is_of(Claimant("BareMetalHost", "default", "m", "uid-m"))


def test_a_claim_of_upstreams_controllers_has_no_uid() -> None:
    claim = claim_of(server("a", labels=OWNER))
    assert claim is not None
    assert claim.is_of(Claimant("TinkerbellMachine", "default", "other", "any"))
    assert not claim.is_of(Claimant("Host", "default", "other", "any")), "upstream's controllers claim for one kind"


def test_release_takes_the_owners_data_along() -> None:
    write = release(server("a", labels=OWNER, finalizers=["infrastructure.cluster.x-k8s.io/tinkerbellmachine"]))
    assert write.body["spec"] == {"userData": None}
    assert write.body["metadata"]["finalizers"] is None
    assert write.resource_version == "1"


@pytest.mark.parametrize(
    ("count", "place", "message"),
    [
        (1, 1, "1 of 1 Hardware fits, and 1 earlier machine waits for the same servers"),
        (2, 3, "2 of 2 Hardware fit, and 3 earlier machines wait for the same servers"),
    ],
)
def test_who_came_earlier_is_counted(count: int, place: int, message: str) -> None:
    ranked = [verdict(wish(wanted()), server(name)) for name in ("a", "b")[:count]]
    assert shortage(ranked, place) == message
