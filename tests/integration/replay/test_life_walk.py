"""Random walks over what people do with clusters on few servers, judged by what they asked for, on virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.fleet.seeds import HASH_SEED
from support.lives.oracle import Asked, Seen, SeenMachine, SeenNode, SeenServer, troubles
from support.lives.replay import walks

SEEDS, SOAK_SEEDS = range(5), range(5, 100)
NEW, OLD = "v1.34.3", "v1.34.2"
ASKED = {"red": Asked(control_planes=1, workers=1, version=NEW)}
LACKING = "InfrastructureReady: no hardware available: all 2 Hardware are claimed"
HEAD, WORKER = SeenMachine("red-0", "red", True, NEW), SeenMachine("red-1", "red", False, NEW)
HEAD_NODE, NODE = SeenNode("s1", "red", True, NEW), SeenNode("s2", "red", False, NEW)
TAKEN = (SeenServer("s1", "red-0", "is on"), SeenServer("s2", "red-1", "is on"))
OBJECTS = ("Machine red-0", "Workflow red-0", "Secret red-ca")
GOOD = Seen((HEAD, WORKER), (HEAD_NODE, NODE), (*TAKEN, SeenServer("s3")), OBJECTS)
FULL = replace(GOOD, servers=TAKEN)
MORE = {"red": replace(ASKED["red"], workers=2)}
WAITS = SeenMachine("red-2", "red", False, NEW, LACKING)
MADE = {"pink": Asked(control_planes=1, workers=0, version=NEW, on_servers=False)}
MADE_MACHINE, MADE_NODE = SeenMachine("pink-0", "pink", True, NEW), SeenNode("pink-0", "pink", True, NEW)
BESIDE = replace(FULL, machines=(HEAD, WORKER, WAITS, MADE_MACHINE), nodes=(HEAD_NODE, NODE, MADE_NODE))


@pytest.mark.parametrize("seeds", [SEEDS, pytest.param(SOAK_SEEDS, marks=pytest.mark.soak)], ids=["few", "many"])
def test_walks_end_as_asked(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", HASH_SEED)
    failures = walks(seeds)
    assert not failures, "\n\n".join(failures)


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ({}, Seen(servers=(SeenServer("s1"), SeenServer("s2")))),
        (ASKED, GOOD),
        (ASKED, FULL),
        (MORE, replace(FULL, machines=(HEAD, WORKER, WAITS))),
        # a rollout without a spare server: the new Machine waits, the old ones serve
        (
            ASKED,
            replace(
                FULL,
                machines=(HEAD, replace(WORKER, version=OLD), WAITS),
                nodes=(HEAD_NODE, replace(NODE, version=OLD)),
            ),
        ),
        # a cluster without a single server: its worker waits for its control plane
        (
            {**ASKED, "blue": ASKED["red"]},
            replace(
                FULL,
                machines=(
                    *(HEAD, WORKER, SeenMachine("blue-0", "blue", True, NEW, LACKING)),
                    SeenMachine("blue-1", "blue", False, NEW, "BootstrapConfigReady: waits for the control plane"),
                ),
            ),
        ),
        (MADE | MORE, BESIDE),
        (MADE, Seen((MADE_MACHINE,), (MADE_NODE,), (SeenServer("s1"),), ("DevMachine pink-0",))),
    ],
    ids=[
        *("nothing", "as asked", "on all servers", "one too many", "no spare server", "no server at all"),
        *("beside machines in memory", "machines in memory"),
    ],
)
def test_what_is_as_asked_is_no_trouble(asked: dict[str, Asked], seen: Seen) -> None:
    assert troubles(asked, seen) == []


@pytest.mark.parametrize(
    ("asked", "seen", "trouble"),
    [
        ({}, Seen(objects=OBJECTS[2:]), "Secret red-ca was left behind"),
        (ASKED, replace(GOOD, objects=("Workflow red-9-wipe",)), "Workflow red-9-wipe was left behind"),
        ({}, Seen(servers=(SeenServer("s1", used="is on"),)), "s1 is nobody's, but is on"),
        (
            ASKED,
            replace(GOOD, servers=(SeenServer("s3", "red-9"), *TAKEN)),
            "s3 belongs to red-9, which does not exist",
        ),
        (ASKED, replace(GOOD, machines=(HEAD, replace(WORKER, going=True))), "red-1 is still being deleted: "),
        (ASKED, replace(GOOD, nodes=(HEAD_NODE,)), "red-1: "),
        (ASKED, replace(GOOD, nodes=(HEAD_NODE, replace(NODE, ready=False))), "red-1: "),
        (
            ASKED,
            replace(GOOD, nodes=(HEAD_NODE, replace(NODE, version=OLD))),
            "Nodes are 1 red worker v1.34.2 True, 1 red control plane v1.34.3 True, not 1 red worker v1.34.3 True",
        ),
        (ASKED, replace(GOOD, machines=(HEAD, WORKER, WAITS)), "red-2: InfrastructureReady: no hardware available"),
        (MORE, replace(GOOD, machines=(HEAD, WORKER, WAITS)), "red-2: InfrastructureReady: no hardware available"),
        (MORE, FULL, "red has 1 worker Machines, of which 1 are Nodes, and 2 are asked for"),
        (
            MORE,
            replace(FULL, machines=(HEAD, WORKER, replace(WAITS, says="there is no Hardware"))),
            "red-2 does not say that servers are lacking: there is no Hardware",
        ),
        (
            MORE,
            replace(FULL, machines=(HEAD, WORKER, WAITS), nodes=(HEAD_NODE,)),
            "s2 belongs to red-1, which is no Ready Node, while others wait for servers",
        ),
        (
            MORE,
            replace(FULL, machines=(HEAD, WORKER, WAITS), nodes=(HEAD_NODE, NODE, replace(NODE, server="s9"))),
            "there are 3 Nodes, of which 2 are Ready on servers of their clusters",
        ),
        # machines in memory are never lacking
        (MADE | MORE, replace(BESIDE, nodes=(HEAD_NODE, NODE)), "Nodes are none, not 1 pink control plane"),
        (MADE, Seen((MADE_MACHINE,), (), (SeenServer("s1"),)), "Nodes are none, not 1 pink control plane"),
        ({}, Seen(objects=("DevCluster pink",)), "DevCluster pink was left behind"),
    ],
    ids=lambda value: value.split(":")[0][:40] if isinstance(value, str) else "",
)
def test_what_is_not_as_asked_is_trouble(asked: dict[str, Asked], seen: Seen, trouble: str) -> None:
    found = troubles(asked, seen)
    assert any(one.startswith(trouble) for one in found), found
