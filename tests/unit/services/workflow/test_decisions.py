"""Selection, reports and reboots: pure decisions over Workflows."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.services.workflow import reboot, report, response, selection
from ironbell.services.workflow.changes import Change, Code, annotations_patch, status_patch
from ironbell.services.workflow.report import Accept, Ignore, IgnoreReason, Reject, Report
from ironbell.services.workflow.selection import Interrupted, Nothing, Serve, Unrunnable

NOW = "2026-01-01T00:00:00Z"
STATES = ["", "PREPARING", "PENDING", "RUNNING", "POST", "SUCCESS", "FAILED", "TIMEOUT"]
TERMINAL = {"SUCCESS", "FAILED", "TIMEOUT"}


def a_body(*states: str, name: str = "wf", **changes) -> dict:
    """A Workflow with one task whose actions have these states."""
    actions = [
        {"id": f"a{i}", "name": f"n{i}", "image": changes.get("image", "x"), "state": state}
        for i, state in enumerate(states)
    ]
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "resourceVersion": "7",
            "creationTimestamp": changes.get("created", "2026-01-01T00:00:00Z"),
            "annotations": changes.get("annotations", {}),
        },
        "status": {
            "agentID": "m",
            "state": changes.get("state", "PENDING"),
            "tasks": changes.get("tasks") or [{"id": "t0", "name": "os", "agentID": "m", "actions": actions}],
        },
    }


def a_workflow(*states: str, **changes) -> Workflow:
    return WORKFLOW.decode(msgspec.json.encode(a_body(*states, **changes)))


def chosen(*workflows: Workflow, boot_id: str = "") -> object:
    return selection.choose(workflows, ["m"], boot_id=boot_id, now=NOW)


class TestImages:
    """An agent that names its built-in actions gets nothing of a Workflow that it cannot run to its end."""

    KNOWN = ("image2disk", "reboot")

    def chosen(self, *tasks: list[dict], known: tuple[str, ...] = KNOWN, **changes):
        listed = [
            {"id": f"t{n}", "name": f"t{n}", "agentID": agent, "actions": actions}
            for n, (agent, actions) in enumerate(zip(("m", "other"), tasks, strict=False))
        ]
        return selection.choose([a_workflow(tasks=listed, **changes)], ["m"], boot_id="b", builtin=known, now=NOW)

    def an_action(self, image: str, **more) -> dict:
        return {"id": image, "name": image, "image": image, "state": "PENDING", **more}

    def test_an_image_that_it_cannot_run_fails_the_workflow_before_the_first_action(self):
        found = self.chosen([self.an_action("quay.io/tinkerbell/image2disk:v1"), self.an_action("example.org/own:v2")])
        assert isinstance(found, Unrunnable)
        assert found.change.status["state"] == "FAILED"
        ((place, fields),) = found.change.actions.items()
        assert place == (0, 1)
        assert fields["state"] == "FAILED"
        assert fields["message"] == (
            'Image "example.org/own:v2" is not built into this machine\'s agent, which runs no containers. No action'
            " was run. Use a built-in action (image2disk, reboot, waitdaemon), or boot HookOS, whose agent runs"
            " containers."
        )

    def test_agents_that_do_not_say_run_everything(self):
        assert isinstance(self.chosen([self.an_action("example.org/own:v2")], known=()), Serve)

    def test_what_runs_already_goes_on(self):
        begun = [self.an_action("reboot", state="SUCCESS"), self.an_action("own")]
        assert isinstance(self.chosen(begun, state="RUNNING"), Serve)
        again = [self.an_action("own", state="RUNNING")]
        assert isinstance(self.chosen(again, state="RUNNING"), Serve)

    def test_actions_of_other_agents_are_theirs(self):
        assert isinstance(self.chosen([self.an_action("reboot")], [self.an_action("own")]), Serve)

    def test_a_wrapper_is_judged_by_what_it_starts(self):
        def wrapper(image: str, *command: str) -> dict:
            return self.an_action("waitdaemon", environment={"IMAGE": image}, command=list(command))

        assert isinstance(self.chosen([wrapper("quay.io/tinkerbell/reboot")]), Serve)
        assert isinstance(self.chosen([wrapper("alpine", "/sbin/reboot", "-f")]), Serve)
        found = self.chosen([wrapper("alpine", "sh")])
        assert isinstance(found, Unrunnable)
        assert '"waitdaemon" with IMAGE "alpine"' in found.message


class TestSelection:
    def test_what_runs_comes_before_what_waits_and_the_older_before_the_newer(self):
        old = a_workflow("PENDING", name="old", created="2025-01-01T00:00:00Z")
        new = a_workflow("PENDING", name="new", created="2026-01-01T00:00:00Z")
        runs = a_workflow("SUCCESS", "PENDING", name="runs", state="RUNNING", created="2026-02-01T00:00:00Z")
        for order in ([old, new, runs], [runs, new, old], [new, runs, old]):
            assert chosen(*order).workflow is runs
        assert chosen(new, old).workflow is old

    def test_terminal_workflows_never_shadow(self):
        ended = [a_workflow("FAILED", name=f"e{state}", state=state) for state in ("SUCCESS", "FAILED", "TIMEOUT")]
        assert chosen(*ended, a_workflow("PENDING")).workflow.metadata.name == "wf"
        assert chosen(*ended).code is Code.FAILED_PRECONDITION

    def test_a_pending_workflow_without_actions_does_not_block_the_next(self):
        empty = a_workflow(name="a-empty", created="2020-01-01T00:00:00Z")
        assert chosen(empty) == Nothing(Code.NOT_FOUND, "no Actions found")
        assert chosen(empty, a_workflow("PENDING")).workflow.metadata.name == "wf"

    def test_a_workflow_that_is_being_deleted_is_not_started(self):
        body = a_body("PENDING")
        body["metadata"]["deletionTimestamp"] = NOW
        assert chosen(WORKFLOW.decode(msgspec.json.encode(body))).message == "no Workflows found"

    @pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
    def test_a_workflow_that_a_person_has_disabled_hands_out_nothing(self, state):
        held = a_workflow("PENDING", state=state, annotations={"tinkerbell.org/disabled": "wrong disk"})
        choice = chosen(held)
        assert isinstance(choice, Nothing)
        assert choice.code is Code.FAILED_PRECONDITION
        assert "tinkerbell.org/disabled" in choice.message

    def test_a_disabled_workflow_that_waits_lets_others_pass_and_one_that_runs_does_not(self):
        disabled = {"tinkerbell.org/disabled": ""}
        other = a_workflow("PENDING", name="other")
        assert chosen(a_workflow("PENDING", annotations=disabled), other).workflow is other
        assert isinstance(chosen(a_workflow("PENDING", state="RUNNING", annotations=disabled), other), Nothing)

    def test_the_next_action_follows_the_last_success_over_tasks(self):
        tasks = [
            {"id": "t0", "name": "a", "agentID": "m", "actions": [{"id": "a", "name": "a", "state": "SUCCESS"}]},
            {"id": "t1", "name": "b", "agentID": "m", "actions": [{"id": "b", "name": "b", "state": "PENDING"}]},
        ]
        serve = chosen(a_workflow(tasks=tasks, state="RUNNING"))
        assert serve.action.id == "b"
        assert not serve.is_first
        tasks[1]["agentID"] = "other"
        assert chosen(a_workflow(tasks=tasks, state="RUNNING")).message == "Task not assigned to Agent"

    @given(
        st.lists(
            st.tuples(st.sampled_from(STATES), st.lists(st.sampled_from(["", *STATES[2:]]), max_size=4)), max_size=5
        ),
        st.sampled_from(["", "b1", "b2"]),
        st.sampled_from(["", '{"m":"b1"}', "rubbish"]),
    )
    @settings(max_examples=200, deadline=None)
    def test_the_order_of_the_list_does_not_matter_and_only_open_work_is_served(self, shapes, boot_id, known):
        workflows = [
            a_workflow(*actions, name=f"w{i}", state=state, annotations={"ironbell.dev/boot-ids": known})
            for i, (state, actions) in enumerate(shapes)
        ]
        choice = chosen(*workflows, boot_id=boot_id)
        assert chosen(*reversed(workflows), boot_id=boot_id) == choice
        if isinstance(choice, Serve | Interrupted):
            assert choice.workflow.status.state in {"PENDING", "RUNNING"}
        if isinstance(choice, Serve):
            assert choice.action.state in {"", "PENDING", "RUNNING", "POST"}


class TestReports:
    def a_report(self, state: str = "SUCCESS", action: str = "a0", **changes) -> Report:
        fields = {"workflow_id": "ns/wf", "task_id": "t0", "action_id": action, "agent_id": "m", "state": state}
        return Report(**{**fields, **changes})

    @pytest.mark.parametrize("field", ["workflow_id", "task_id", "action_id"])
    def test_incomplete_reports_are_refused(self, field):
        assert report.check(self.a_report(**{field: ""})).code is Code.INVALID_ARGUMENT

    @pytest.mark.parametrize("text", ["wf", "/wf", "ns/", "ns/../../secrets/x", "ns/a/b", "ns/a?b", "NS/a", "ns/a\n"])
    def test_names_that_no_object_has_never_reach_the_api(self, text):
        assert report.check(self.a_report(workflow_id=text)).message == "invalid workflow id"

    @pytest.mark.parametrize("state", ["UNSPECIFIED", "PENDING", "9"])
    def test_states_that_are_none_are_refused(self, state):
        assert report.check(self.a_report(state)).code is Code.INVALID_ARGUMENT

    @pytest.mark.parametrize(
        ("state", "actions", "expected"),
        [
            ("SUCCESS", ("RUNNING",), "POST"),
            ("SUCCESS", ("RUNNING", "PENDING"), "RUNNING"),
            ("SUCCESS", ("PENDING", "PENDING"), "RUNNING"),
            ("FAILED", ("RUNNING", "PENDING"), "FAILED"),
            ("TIMEOUT", ("RUNNING", "PENDING"), "TIMEOUT"),
            ("RUNNING", ("PENDING",), "RUNNING"),
        ],
    )
    def test_the_workflow_s_state_follows(self, state, actions, expected):
        verdict = report.decide(a_workflow(*actions, state="RUNNING"), self.a_report(state), now=NOW)
        assert isinstance(verdict, Accept)
        assert verdict.change.status["state"] == expected
        assert verdict.change.status["currentState"]["state"] == state

    @pytest.mark.parametrize("state", sorted({*STATES} - {"PENDING", "RUNNING"}))
    def test_what_has_ended_or_not_begun_never_changes(self, state):
        workflow = a_workflow("RUNNING", state=state)
        late = report.decide(workflow, self.a_report("SUCCESS"), now=NOW)
        assert late == Ignore(IgnoreReason.NOT_ACTIVE, f"workflow is in state {state or 'new'}")
        assert isinstance(report.decide(workflow, self.a_report("RUNNING"), now=NOW), Reject)

    def test_labels_of_the_metric_stay_what_they_are(self):
        labels = ["workflow not found", "workflow is", "not the current action", "already running"]
        assert [reason.value for reason in IgnoreReason] == labels

    def test_a_disabled_workflow_begins_no_action_and_keeps_the_result_of_the_one_at_work(self):
        disabled = {"tinkerbell.org/disabled": "look first"}
        waits = a_workflow("PENDING", annotations=disabled)
        assert isinstance(report.decide(waits, self.a_report("RUNNING"), now=NOW), Reject)
        runs = a_workflow("RUNNING", state="RUNNING", annotations=disabled)
        assert isinstance(report.decide(runs, self.a_report("SUCCESS"), now=NOW), Accept)

    def test_only_the_current_action_is_reported_on(self):
        workflow = a_workflow("SUCCESS", "RUNNING", "PENDING", state="RUNNING")
        for action in ("a0", "a2"):
            assert isinstance(report.decide(workflow, self.a_report("FAILED", action), now=NOW), Ignore)
            assert isinstance(report.decide(workflow, self.a_report("RUNNING", action), now=NOW), Reject)

    def test_times_are_the_server_s_and_the_begin_is_kept(self):
        body = a_body("RUNNING", state="RUNNING")
        body["status"]["tasks"][0]["actions"][0]["executionStart"] = "2025-12-31T23:00:00Z"
        workflow = WORKFLOW.decode(msgspec.json.encode(body))
        verdict = report.decide(workflow, self.a_report(duration="1h", message="m" * 9999), now=NOW)
        fields = verdict.change.actions[(0, 0)]
        assert (fields["executionStart"], fields["executionStop"]) == ("2025-12-31T23:00:00Z", NOW)
        assert len(fields["message"]) == 4096

    @given(
        st.sampled_from(STATES),
        st.lists(st.sampled_from(["", *STATES[2:]]), min_size=1, max_size=4),
        st.lists(
            st.tuples(
                st.sampled_from(["RUNNING", "SUCCESS", "FAILED", "TIMEOUT"]),
                st.sampled_from(["a0", "a1", "a2", "a3", "zz"]),
                st.sampled_from(["m", "other"]),
            ),
            max_size=12,
        ),
    )
    @settings(max_examples=300, deadline=None)
    def test_no_sequence_of_reports_leaves_a_terminal_state(self, state, actions, reports):
        # an action runs only when all before it have succeeded
        assume("RUNNING" not in actions or set(actions[: actions.index("RUNNING")]) <= {"SUCCESS"})
        assume(actions.count("RUNNING") <= 1)
        body = a_body(*actions, state=state)
        for reported, action, agent in reports:
            workflow = WORKFLOW.decode(msgspec.json.encode(body))
            verdict = report.decide(workflow, self.a_report(reported, action, agent_id=agent), now=NOW)
            before = body["status"]["state"]
            if isinstance(verdict, Accept):
                patch = status_patch(body, verdict.change)
                assert patch is not None
                body["status"].update(msgspec.json.decode(patch)["status"])
            after = body["status"]["state"]
            if before in TERMINAL | {"POST"}:
                assert after == before
            assert after in {before, "RUNNING", "POST", "FAILED", "TIMEOUT"}
            found = [one["state"] for one in body["status"]["tasks"][0]["actions"]]
            assert found.count("RUNNING") <= 1


class TestReboots:
    def test_nothing_happens_without_two_names(self):
        workflow = a_workflow("RUNNING", state="RUNNING", annotations={"ironbell.dev/boot-ids": '{"m":"1"}'})
        assert isinstance(chosen(workflow, boot_id="1"), Serve)
        assert isinstance(chosen(workflow), Serve)
        assert isinstance(chosen(workflow, boot_id="2"), Interrupted)
        assert isinstance(chosen(a_workflow("RUNNING", state="RUNNING"), boot_id="2"), Serve)

    def test_a_workflow_that_only_waits_may_see_any_number_of_boots(self):
        workflow = a_workflow("PENDING", annotations={"ironbell.dev/boot-ids": '{"m":"1"}'})
        serve = chosen(workflow, boot_id="2")
        assert serve.change.annotations == {"ironbell.dev/boot-ids": '{"m":"2"}'}

    @pytest.mark.parametrize("image", ["x/reboot:1", "q.io/a/KEXEC", "waitdaemon@sha256:1"])
    def test_an_action_that_leaves_on_purpose_is_no_failure(self, image):
        known = {"ironbell.dev/boot-ids": '{"m":"1"}'}
        leaving = a_workflow("SUCCESS", "PENDING", state="RUNNING", annotations=known, image=image)
        assert isinstance(chosen(leaving, boot_id="2"), Serve)
        crashed = a_workflow("SUCCESS", "RUNNING", state="RUNNING", annotations=known, image=image)
        assert isinstance(chosen(crashed, boot_id="2"), Interrupted)

    def test_a_reboot_at_the_end_of_a_task_is_on_purpose_for_the_next_task_of_the_same_machine(self):
        known = {"ironbell.dev/boot-ids": '{"m":"1","other":"7"}'}
        leaves = {"id": "a", "name": "a", "image": "x/reboot:1", "state": "SUCCESS"}
        stays = {"id": "b", "name": "b", "image": "x/cexec:1", "state": "SUCCESS"}
        waits = {"id": "c", "name": "c", "image": "x/cexec:1", "state": "PENDING"}

        def choice(*tasks: tuple[str, list]) -> object:
            found = [{"id": f"t{i}", "name": f"t{i}", "agentID": of, "actions": a} for i, (of, a) in enumerate(tasks)]
            return chosen(a_workflow(tasks=found, state="RUNNING", annotations=known), boot_id="2")

        assert isinstance(choice(("m", [leaves]), ("m", [waits])), Serve)
        assert isinstance(choice(("m", [leaves]), ("other", [stays]), ("m", [waits])), Serve)
        assert isinstance(choice(("m", [stays]), ("m", [waits])), Interrupted)
        assert isinstance(choice(("m", [stays]), ("other", [leaves]), ("m", [waits])), Interrupted)

    def test_beginning_again_is_still_known_when_only_the_first_of_its_writes_was_stored(self):
        known = {"ironbell.dev/boot-ids": '{"m":"1"}', "ironbell.dev/on-reboot": "restart"}
        body = a_body("SUCCESS", "RUNNING", state="RUNNING", annotations=known)
        choice = chosen(WORKFLOW.decode(msgspec.json.encode(body)), boot_id="2")
        assert isinstance(choice, Interrupted)
        body["metadata"]["annotations"].update(choice.change.annotations)
        body["metadata"]["annotations"].pop("ironbell.dev/progress")
        again = chosen(WORKFLOW.decode(msgspec.json.encode(body)), boot_id="2")
        assert isinstance(again, Interrupted), "an action in the middle must not go on in a machine that began anew"
        assert again.change.status["state"] == "PENDING"

    def test_an_action_that_is_resumed_begins_anew(self):
        known = {"ironbell.dev/boot-ids": '{"m":"1"}', "ironbell.dev/on-reboot": "resume"}
        choice = chosen(a_workflow("SUCCESS", "RUNNING", state="RUNNING", annotations=known), boot_id="2")
        assert isinstance(choice, Serve)
        assert choice.change.actions == {(0, 1): {"state": "PENDING", "executionStart": None}}
        assert choice.change.status["currentState"]["state"] == "PENDING"
        assert choice.action.state == "PENDING"

    def test_an_agent_that_names_its_boot_is_not_noted_when_it_fetches_one_action_after_the_other(self):
        known = {"ironbell.dev/boot-ids": '{"m":"1"}'}
        running = a_workflow("SUCCESS", "PENDING", state="RUNNING", annotations=known)
        assert chosen(running, boot_id="1").change.status == {}, "it says that it begins before it does anything"
        assert chosen(running).change.status["currentState"]["actionID"] == "a1", "another agent may not"
        first = chosen(a_workflow("PENDING", annotations=known), boot_id="1")
        assert first.change.status["currentState"]["actionID"] == "a0", "that it came is news"

    def test_an_unknown_policy_fails_and_is_named(self):
        known = {"ironbell.dev/boot-ids": '{"m":"1"}', "ironbell.dev/on-reboot": "maybe"}
        choice = chosen(a_workflow("PENDING", state="RUNNING", annotations=known), boot_id="2")
        assert "'maybe'" in choice.change.actions[(0, 0)]["message"]

    def test_what_is_recorded_keeps_other_agents(self):
        workflow = a_workflow("PENDING", annotations={"ironbell.dev/boot-ids": '{"z":"9"}'})
        assert reboot.boot_annotation(workflow, "m", boot_id="1") == {"ironbell.dev/boot-ids": '{"m":"1","z":"9"}'}


class TestChanges:
    def test_patches_keep_what_our_types_do_not_know(self):
        body = a_body("PENDING")
        body["status"]["tasks"][0]["actions"][0]["future"] = [1]
        change = Change(status={"state": "RUNNING"}, actions={(0, 0): {"state": "RUNNING", "message": None}})
        patch = msgspec.json.decode(status_patch(body, change))
        assert patch["metadata"] == {"resourceVersion": "7"}
        assert patch["status"]["tasks"][0]["actions"][0]["future"] == [1]
        assert body["status"]["tasks"][0]["actions"][0]["state"] == "PENDING", "the original is left alone"

    def test_nothing_to_change_is_nothing_to_write(self):
        body = a_body("PENDING", annotations={"k": "v"})
        assert status_patch(body, Change(status={"state": "PENDING"}, actions={(0, 0): {"state": "PENDING"}})) is None
        assert annotations_patch(body, Change(annotations={"k": "v", "gone": None})) is None
        assert annotations_patch(body, Change(annotations={"k": None})) is not None


def test_a_template_cannot_switch_off_the_check_of_the_machine():
    workflow = a_workflow("PENDING")
    task = workflow.status.tasks[0]
    action = msgspec.structs.replace(task.actions[0], environment={"IRONBELL_MACHINE_MAC": "another"})
    found = response.assemble(workflow, task, action, expected={"IRONBELL_MACHINE_MAC": "the right one"})
    assert list(found.environment) == ["IRONBELL_MACHINE_MAC=the right one"]


def test_the_disks_to_keep_go_out_with_everything_that_the_workflow_writes_to():
    workflow = a_workflow("PENDING", "PENDING", "PENDING")
    task = workflow.status.tasks[0]
    wipe, image, layout = task.actions
    actions = [
        msgspec.structs.replace(wipe, image="wipe", environment={"DEST_DISK": "/dev/sdz"}),
        msgspec.structs.replace(image, image="x/image2disk:v1", environment={"DEST_DISK": "/dev/sda"}),
        msgspec.structs.replace(layout, image="rootio"),
    ]
    task = msgspec.structs.replace(task, actions=actions)
    workflow = msgspec.structs.replace(workflow, status=msgspec.structs.replace(workflow.status, tasks=[task]))
    storage = {"disks": [{"device": "/dev/sdb"}], "filesystems": [{"mount": {"device": "/dev/sdc1"}}]}
    body = {"metadata": {"name": "m"}, "spec": {"metadata": {"instance": {"storage": storage}}}}
    hardware = msgspec.convert(body, Hardware)
    assert response.keeping(workflow, [task.agent_id], hardware) == {}
    workflow.metadata.annotations["ironbell.dev/keep-disks"] = "B2"
    hardware.metadata.annotations["ironbell.dev/keep-disks"] = "A1, B2"
    assert response.keeping(workflow, [task.agent_id], hardware) == {
        "IRONBELL_KEEP_DISKS": "A1,B2",
        "IRONBELL_WORKFLOW_DISKS": "/dev/sda,/dev/sdb,/dev/sdc1",
    }


@pytest.mark.parametrize(
    ("action", "state", "ends"), [("a0", "SUCCESS", False), ("a0", "FAILED", True), ("a1", "SUCCESS", True)]
)
def test_a_workflow_ends_with_its_last_action_or_a_failure(action: str, state: str, ends: bool) -> None:
    workflow = a_workflow("RUNNING", "PENDING", state="RUNNING")
    assert report.ends_workflow(workflow, Report("ns/wf", "t0", action, "m", state)) is ends
