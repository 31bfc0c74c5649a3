"""What `ironbell why` says of the servers that a machine could have."""

from ironbell.operations.why.candidates import SHOWN, as_objects, evaluate
from ironbell.provisioner.lifecycle.names import QUEUED_IN
from support.servers.captworld import machine, server


def test_every_server_is_listed_with_what_rules_it_out() -> None:
    bmc = {"bmcRef": {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "bmc"}}
    held = server("b", annotations={"ironbell.dev/hold": "fan"}, spec=bmc)
    servers = [server("a", labels={"rack": "r2"}, spec=bmc), held, server("c", spec=bmc)]
    found = as_objects(evaluate(machine(), servers))
    assert [(one["metadata"]["name"], one["status"]["state"]) for one in found] == [
        ("a", "fits, score 0"),
        ("c", "fits, score 0"),
        ("b", "ruled out: it is held (ironbell.dev/hold: fan)"),
    ]


def test_the_failure_domain_counts() -> None:
    waiting = machine()
    waiting.metadata.annotations[QUEUED_IN] = "rack=r1"
    (found,) = as_objects(evaluate(waiting, [server("a", labels={"rack": "r2"})]))
    assert "in failure domain 'r2', not in 'r1'" in found["status"]["state"]


def test_many_servers_are_counted() -> None:
    found = as_objects(evaluate(machine(), [server(f"s{number:03}") for number in range(SHOWN + 5)]))
    assert len(found) == SHOWN + 1
    assert found[-1]["status"]["state"].startswith("5 more")
