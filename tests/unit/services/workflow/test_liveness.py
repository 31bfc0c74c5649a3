"""Signs of life of agents: what is expected of whom, and what follows from silence."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import msgspec
import pytest
from grpclib.exceptions import GRPCError

from ironbell.api.client import Unavailable
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.codec.proto.workflow_pb2 import ActionStatusRequest
from ironbell.services.workflow import names
from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.liveness import SILENCE_S, Liveness, heartbeat_annotation, running_action
from ironbell.services.workflow.port.receive import HEARTBEAT_METADATA, interval_of
from ironbell.services.workflow.service import WorkflowService

AGENT = "m"
BEATS = {names.HEARTBEATS: '{"m":20.0}'}


def a_workflow(name="wf", *, state="RUNNING", action="RUNNING", annotations=BEATS) -> Workflow:
    document = {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Workflow",
        "metadata": {"namespace": "ns", "name": name, "uid": f"uid-{name}", "annotations": annotations},
        "status": {
            "state": state,
            "agentID": AGENT,
            "tasks": [
                {"id": "t", "name": "t", "agentID": AGENT, "actions": [{"id": "a", "name": "wipe", "state": action}]}
            ],
        },
    }
    return WORKFLOW.decode(msgspec.json.encode(document))


class Time:
    """A clock to be set."""

    def __init__(self) -> None:
        self.at = 1000.0

    def monotonic(self) -> float:
        return self.at

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


class Site:
    """A service with Workflows, and which of them failed."""

    def __init__(self, *workflows: Workflow, replica: str = "") -> None:
        self.index, self.time, self.failed, self.named = WorkflowTable(), Time(), [], []
        for workflow in workflows:
            self.index.upsert(workflow)
        annotator = SimpleNamespace(put=lambda key, name, value: self.named.append((key[1], name, value)))
        self.service = Liveness(self, annotator, self.time, replica=replica)
        self.meanwhile, self.answers = (lambda: None), True

    async def decide(self, namespace, name, *, decide, change):
        """The API; while it does not answer, nothing is stored."""
        if not self.answers:
            raise Unavailable("connection refused")
        self.meanwhile()
        decided = decide(self.index.get(namespace, name))
        if (wanted := change(decided)) is not None:
            self.failed.append((name, wanted.actions[(0, 0)]["message"]))
            self.index.remove(namespace, name)
        return decided

    async def after(self, seconds: float) -> None:
        """Look as often as the service does."""
        until, pause_s = self.time.at + seconds, SILENCE_S / 20
        while self.time.at < until:
            self.time.at += pause_s
            await self.service.check(expected_s=pause_s)


@pytest.mark.parametrize(
    ("workflow", "is_expected"),
    [
        (a_workflow(), True),
        (a_workflow(annotations={}), False),
        (a_workflow(annotations={names.HEARTBEATS: "{"}), False),
        (a_workflow(annotations={names.HEARTBEATS: '{"other":20}'}), False),
        (a_workflow(action="PENDING"), False),
        (a_workflow(state="PENDING"), False),
        (None, False),
    ],
)
def test_who_is_expected_to_send_signs_of_life(workflow, is_expected):
    assert (running_action(workflow) is not None) is is_expected


def test_what_an_agent_announces_is_recorded_once_and_taken_back():
    silent = a_workflow(annotations={})
    assert heartbeat_annotation(silent, AGENT, 0.0) == {}
    assert heartbeat_annotation(silent, AGENT, 20.0) == {names.HEARTBEATS: '{"m":20.0}'}
    assert heartbeat_annotation(a_workflow(), AGENT, 20.0) == {}
    assert heartbeat_annotation(a_workflow(), AGENT, 0.0) == {names.HEARTBEATS: None}, (
        "the machine booted an older system"
    )


@pytest.mark.parametrize(
    ("text", "seconds"), [("20", 20.0), ("", 0.0), ("x", 0.0), ("-1", 0.0), ("nan", 0.0), ("inf", 0.0), ("1e9", 0.0)]
)
def test_what_an_agent_announces(text, seconds):
    assert interval_of({HEARTBEAT_METADATA: text}) == seconds
    assert interval_of(None) == 0.0


async def test_silence_fails_the_action_and_a_sign_of_life_does_not():
    site = Site(a_workflow("silent"), living := a_workflow("living"))
    for _ in range(5):
        await site.after(SILENCE_S / 4)
        site.service.record(living, [AGENT], "a")
    assert [name for name, _ in site.failed] == ["silent"]
    assert "no sign of life for 3" in site.failed[0][1]
    assert "action wipe was running" in site.failed[0][1]


class Call:
    """As much of a call as the service uses."""

    def __init__(self, message) -> None:
        body = message.SerializeToString()
        self._stream, self.metadata, self.deadline, self.peer = self, {}, None, None
        self._left = [b"\0" + len(body).to_bytes(4, "big"), body]

    async def recv_data(self, size: int) -> bytes:
        return self._left.pop(0)

    async def send_message(self, message) -> None:
        return None


async def test_a_report_that_cannot_be_stored_is_a_sign_of_life():
    """The action is done and its agent sends no more beats, but reports until the API answers again."""
    site = Site(a_workflow())
    service = WorkflowService(site, site.time, liveness=site.service)
    states = ActionStatusRequest.StateType
    done = {"task_id": "t", "action_id": "a", "agent_id": AGENT, "action_state": states.SUCCESS}
    site.answers = False
    for _ in range(8):
        await site.after(SILENCE_S / 4)
        with pytest.raises(GRPCError):
            await service.ReportActionStatus(Call(ActionStatusRequest(workflow_id="ns/wf", **done)))
    site.answers = True
    await site.after(SILENCE_S / 4)
    assert not site.failed


async def test_an_agent_that_is_heard_while_its_silence_is_being_stored_does_not_fail():
    site = Site(workflow := a_workflow())
    site.meanwhile = lambda: site.service.record(workflow, [AGENT], "a")
    await site.after(SILENCE_S * 1.2)
    assert not site.failed


async def test_a_beat_for_another_machines_action_counts_for_nothing():
    site = Site(workflow := a_workflow())
    for _ in range(5):
        await site.after(SILENCE_S / 4)
        site.service.record(workflow, ["other"], "a")
        site.service.record(workflow, [AGENT], "b")
    assert [name for name, _ in site.failed] == ["wf"]


async def test_a_workflow_that_survives_reboots_has_the_time_of_one():
    site = Site(a_workflow(annotations={**BEATS, names.ON_REBOOT: "resume"}))
    await site.after(SILENCE_S * 5)
    assert not site.failed
    await site.after(SILENCE_S * 2)
    assert site.failed


async def test_a_service_that_did_not_run_counts_anew():
    """The host was suspended: that nobody was heard says nothing."""
    site = Site(a_workflow())
    await site.after(SILENCE_S / 2)
    site.time.at += 10 * SILENCE_S
    await site.after(SILENCE_S / 2)
    assert not site.failed
    await site.after(SILENCE_S)
    assert site.failed


async def test_where_everybody_is_silent_the_service_doubts_itself_for_a_while():
    site = Site(*(a_workflow(f"w{number}") for number in range(4)))
    await site.after(SILENCE_S * 2)
    assert not site.failed
    await site.after(SILENCE_S * 2)
    assert len(site.failed) == 4


async def test_the_replica_that_hears_an_agent_takes_over_its_workflow():
    site = Site(workflow := a_workflow(annotations={**BEATS, names.LOG_REPLICA: "one"}), replica="two")
    await site.after(SILENCE_S * 2)
    assert not site.failed, "another replica hears it"
    assert not site.named
    site.service.record(workflow, [AGENT], "a")
    assert site.named == [("wf", names.LOG_REPLICA, "two")]


async def test_a_replica_claims_a_workflow_whose_replica_may_be_gone_for_good():
    site = Site(a_workflow(annotations={**BEATS, names.LOG_REPLICA: "one"}), replica="two")
    await site.after(SILENCE_S * 3.2)
    assert site.named == [("wf", names.LOG_REPLICA, "two")]
    assert not site.failed, "the other replica has time to claim it back"
    site.index.upsert(a_workflow(annotations={**BEATS, names.LOG_REPLICA: "two"}))
    await site.after(SILENCE_S * 1.2)
    assert [name for name, _ in site.failed] == ["wf"]
