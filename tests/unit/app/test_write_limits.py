"""What the processes toward machines may write: each field of the table, and no other, by both ways of enforcing it."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from ironbell.api.client import Api, ApiError, Forbidden, PatchType, WriteOptions
from ironbell.api.crd.document import crd_document
from ironbell.api.kind import Collection
from ironbell.api.tinkerbell import HARDWARE, KINDS, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.workflow import WorkflowState
from ironbell.apiserver.access.identity import ADMIN, Identity
from ironbell.apiserver.access.roles import Binding, Role, RoleAuthorizer, Rule
from ironbell.apiserver.core import ApiServer
from ironbell.app.components import COMPONENTS, members
from ironbell.app.install.options import InstallOptions
from ironbell.app.install.policies import policies
from ironbell.app.roles import SERVICE_GROUPS, service_account_user
from ironbell.app.site.wire_limits import limit_wire
from ironbell.app.write_rules import COMPONENTS_OF, EDGES, EVENTS, OPEN, TABLE, FieldPath, Writes, path_text, writes_of
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from ironbell.codec.cel import CelError, compile_expression
from ironbell.contract.servers.boot_progress import LOG_PREFIX
from ironbell.services.workflow import names

Object = dict[str, Any]
STATES = (
    "",
    *(state.value for state in WorkflowState),
    "STATE_PENDING",
    "STATE_RUNNING",
    "STATE_SUCCESS",
    "STATE_FAILED",
    "STATE_TIMEOUT",
)
PROCESSES = tuple(COMPONENTS_OF)
DEPLOYED = tuple(process for process in PROCESSES if process not in {"boot", "workflow"})
"""Those that there are on a cluster; the others are below `ironbell up`."""
PLACES: dict[str, Collection] = {
    "hardware": HARDWARE.collection, "workflows": WORKFLOW.collection, "events": EVENTS,
}  # fmt: skip


LEAST = {"hardware": 150, "workflows": 80, "events": 25}
"""So many fields are tried at least."""


def user_of(process: str) -> str:
    return service_account_user(f"ironbell-{process}")


# ---------------------------------------------------------------- objects with every field


def example(schema: Mapping[str, Any], *, second: bool = False) -> Any:
    """A value with every field that the schema has; another one for `second`."""
    if schema.get("enum"):
        return schema["enum"][-1 if second else 0]
    if schema.get("x-kubernetes-int-or-string"):
        return 2 if second else 1
    kind = schema.get("type", "string")
    if kind == "object":
        if "properties" in schema:
            return {name: example(child, second=second) for name, child in schema["properties"].items()}
        values = schema.get("additionalProperties")
        return {"key": example(values if isinstance(values, dict) else {}, second=second)}
    if kind == "array":
        return [example(schema["items"], second=second)]
    if kind == "boolean":
        return second
    if kind in {"integer", "number"}:
        return 2 if second else 1
    if schema.get("format") == "date-time":
        return "2026-01-02T00:00:00Z" if second else "2026-01-01T00:00:00Z"
    if schema.get("format") == "uri":
        return "http://b.example/" if second else "http://a.example/"
    if pattern := schema.get("pattern"):
        return [text for text in TEXTS if re.search(pattern, text)][1 if second else 0]
    return "b" if second else "a"


TEXTS = (
    "52:54:00:00:00:01", "52:54:00:00:00:02", "100", "200", "192.0.2.0/24", "192.0.3.0/24", "192.0.2.1", "192.0.2.2",
    "a", "b",
)  # fmt: skip
"""Two for each pattern."""


def schema_of(plural: str) -> Mapping[str, Any]:
    kind = {"hardware": HARDWARE, "workflows": WORKFLOW}[plural]
    found: Mapping[str, Any] = crd_document(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return found


EVENT_FIELDS: Object = {
    "involvedObject": {
        "kind": "Hardware", "apiVersion": HARDWARE.api_version, "name": "x", "namespace": "default", "uid": "u",
        "fieldPath": "f", "resourceVersion": "1",
    },
    "reason": "r", "message": "m", "type": "Normal", "count": 1, "action": "",
    "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    "source": {"component": "ironbell-wire", "host": "h"},
    "reportingComponent": "ironbell-wire", "reportingInstance": "i",
}  # fmt: skip


def whole(plural: str, *, second: bool = False) -> Object:
    """An object that has every field, of a Workflow that is at work; with other values for `second`."""
    meta: Object = {
        "name": "x", "namespace": "default", "labels": {"key": "a"}, "annotations": {"other.example/key": "a"},
        "finalizers": ["a.example/f"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}],
    }  # fmt: skip
    if plural == "events":
        return {"apiVersion": "v1", "kind": "Event", "metadata": meta, **copy.deepcopy(EVENT_FIELDS)}
    kind = {"hardware": HARDWARE, "workflows": WORKFLOW}[plural]
    schema = schema_of(plural)
    parts = {part: example(schema[part], second=second) for part in ("spec", "status")}
    if plural == "workflows":
        custom = parts["spec"]["bootOptions"]["custombootConfig"]  # each action is of one kind
        custom["preparingActions"], custom["postActions"] = [{"powerAction": "off"}], [{"powerAction": "on"}]
        if not second:
            parts["status"]["state"] = "RUNNING"
            parts["status"]["agentID"] = parts["status"]["tasks"][0]["agentID"] = "agent"
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **parts}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values are that are neither maps nor lists; lists and maps count as well, since they may become
    shorter."""
    if isinstance(value, dict):
        if path:
            yield path
        for name, child in value.items():
            yield from leaves(child, (*path, name))
    elif isinstance(value, list):
        yield path
        for number, child in enumerate(value):
            yield from leaves(child, (*path, number))
    else:
        yield path


def field_of(path: tuple[Any, ...]) -> FieldPath:
    return tuple("[]" if isinstance(name, int) else name for name in path)


def changed(obj: Object, path: tuple[Any, ...], other: Any) -> Object:
    """The object with another value there: another leaf, a list of another length, a map with one more key."""
    new = copy.deepcopy(obj)
    inner = new
    for name in path[:-1]:
        inner = inner[name]
    value = inner[path[-1]]
    if isinstance(value, dict):
        inner[path[-1]] = {**value, "another": "b"} if path[-1] in MAPS else None
    elif isinstance(value, list):
        inner[path[-1]] = [*value, copy.deepcopy(value[0])]
    else:
        with contextlib.suppress(KeyError):
            for name in path:
                other = other[name]
        inner[path[-1]] = other if not isinstance(other, dict) and other != value else f"{value}b"
    return new


MAPS = {"labels", "annotations", "environment", "hardwareMap", "jobs"}
SERVERS_OWN = {("metadata", "name"), ("metadata", "namespace"), ("metadata",), ("apiVersion",), ("kind",)}


def every_change(plural: str) -> Iterator[tuple[FieldPath, Object, Object]]:
    """Each field of an object of that kind, changed by itself; and all annotations that mean something."""
    old, other = whole(plural), whole(plural, second=True)
    for path in leaves(old):
        if path not in SERVERS_OWN:
            yield field_of(path), old, changed(old, path, other)
    for key in ANNOTATIONS:
        new = copy.deepcopy(old)
        new["metadata"]["annotations"][key] = "b"
        yield ("metadata", "annotations", key), old, new
        yield ("metadata", "annotations", key), new, old


LISTED = [field[2] for row in TABLE for field in row.fields if field[:2] == ("metadata", "annotations")]
ANNOTATIONS = (
    *(key for key in LISTED if "*" not in key),
    f"{LOG_PREFIX}action-1", names.ON_REBOOT, "ironbell.dev/keep-disks", "ironbell.dev/machine-uuid",
    "ironbell.dev/disk-serial", "ironbell.dev/hold", "ironbell.dev/wiped", "ironbell.dev/boot-for", "ironbell.dev/log",
    "ironbell.dev/rendered-from", "tinkerbell.org/disabled", "kubectl.kubernetes.io/last-applied-configuration",
)  # fmt: skip


def is_listed(row: Writes, path: FieldPath) -> bool:
    return any(
        len(path) >= len(field)
        and all(a == b or (b.endswith("*") and a.startswith(b[:-1])) for a, b in zip(path, field, strict=False))
        for field in row.fields
    )


# ---------------------------------------------------------------- the two ways of enforcing it


class Policy:
    """The policy that is installed on other API servers, evaluated here."""

    def __init__(self) -> None:
        options = InstallOptions(words=DEPLOYED)
        (policy, _binding) = policies(options)
        spec = policy["spec"]
        variables = ("object", "oldObject", "request")
        self._rules = spec["matchConstraints"]["resourceRules"]
        (condition,) = spec["matchConditions"]
        self._concerns = compile_expression(condition["expression"], variables)
        self._validations = [
            (
                compile_expression(each["expression"], variables),
                compile_expression(each["messageExpression"], variables),
            )
            for each in spec["validations"]
        ]

    def refuses(self, user: str, plural: str, old: Object | None, new: Object, *, subresource: str = "") -> str:
        """Why the write is refused; empty if it is not."""
        resource = f"{plural}/{subresource}" if subresource else plural
        operation = "UPDATE" if old is not None else "CREATE"
        assert any(resource in rule["resources"] and operation in rule["operations"] for rule in self._rules)
        request: Object = {"userInfo": {"username": user}, "resource": {"resource": plural}, "operation": operation}
        if subresource:  # what is empty is absent, as in an AdmissionReview
            request["subResource"] = subresource
        values = {"object": new, "oldObject": old, "request": request}
        if not self._concerns(values):
            return ""
        for holds, message in self._validations:
            try:
                if not holds(values):
                    return str(message(values))
            except CelError as error:
                return str(error)
        return ""


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy()


@asynccontextmanager
async def serving() -> AsyncIterator[ApiServer]:
    """The embedded API, in which these accounts hold more rights than they have, so that the limit alone decides."""
    authorizer = RoleAuthorizer()
    everything = Role("test", (Rule(("*",), ("*",), ("*",)),))
    authorizer.grant(everything, [Binding("test", users=tuple(user_of(process) for process in PROCESSES))])
    definitions = [crd_document(kind) for kind in KINDS]
    async with ApiServer.open(
        None,
        clock=ManualClock(),
        randomness=SeededRandomness(1),
        definitions=definitions,
        authorizer=authorizer,
    ) as server:
        limit_wire(server.admission)
        yield server


async def put(api: Api, plural: str, obj: Object) -> None:
    """Store an object whole, as the administrator."""
    where = PLACES[plural]
    await api.create(where, "default", msgspec.json.encode(obj))
    if "status" in obj:
        body = msgspec.json.encode({"status": obj["status"]})
        await api.patch(where, "default", "x", body, patch_type=PatchType.MERGE, subresource="status")


def patch_between(old: Any, new: Any) -> Any:
    """The merge patch from one to the other."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return {key: patch_between(old.get(key), new[key]) if key in new else None for key in keys}


async def patched(server: ApiServer, process: str, plural: str, change: Object, *, subresource: str = "") -> str:
    """Why the embedded API refuses a merge patch; empty if it does not."""
    api = server.client(Identity(user_of(process), SERVICE_GROUPS))
    options = WriteOptions(dry_run=True)
    try:
        await api.patch(
            PLACES[plural], "default", "x", msgspec.json.encode(change), patch_type=PatchType.MERGE,
            subresource=subresource, options=options,
        )  # fmt: skip
    except Forbidden as error:
        return error.message
    except ApiError as error:
        return f"INVALID {error.message}"
    return ""


# ---------------------------------------------------------------- tests


@pytest.mark.parametrize("process", DEPLOYED)
@pytest.mark.parametrize(
    ("plural", "subresource"), [("hardware", ""), ("workflows", ""), ("workflows", "status"), ("events", "")]
)
def test_every_other_field_is_refused_by_the_policy(
    policy: Policy, process: str, plural: str, subresource: str
) -> None:
    rows = [
        row
        for row in writes_of(process)
        if (row.resource, row.verb) == (f"{plural}/{subresource}".rstrip("/"), "patch")
    ]
    tried = 0
    for path, old, new in every_change(plural):
        if subresource and path[0] != subresource:
            continue
        if path == ("status", "state") or path == ("status", "agentID"):
            continue  # by value: see below
        tried += 1
        why = policy.refuses(user_of(process), plural, old, new, subresource=subresource)
        may = any(is_listed(row, path) for row in rows)
        assert (why == "") is may, (path_text(path), why)
    assert tried > 15


@pytest.mark.parametrize("process", PROCESSES)
async def test_every_other_field_is_refused_by_the_embedded_api(process: str) -> None:
    async with serving() as server:
        admin = server.client(ADMIN)
        for plural in PLACES:
            await put(admin, plural, whole(plural))
        for plural, where in PLACES.items():
            stored = msgspec.json.decode(await admin.get(where, "default", "x"))
            tried = 0
            for path, old, new in every_change(plural):
                change = patch_between(old, new)
                if (
                    path[:2] == ("metadata", "annotations")
                    and path[2:]
                    and path[2] not in new["metadata"]["annotations"]
                ):
                    continue  # the stored object has none of them
                for subresource in ("", "status"):
                    if subresource and (path[0] != "status" or plural == "events"):
                        continue
                    if not subresource and path[0] == "status" and plural != "events":
                        continue  # the API keeps it as it was
                    if path in {("status", "state"), ("status", "agentID")}:
                        continue  # by value: see below
                    why = await patched(server, process, plural, change, subresource=subresource)
                    if why.startswith("INVALID"):
                        continue  # no account could
                    resource = f"{plural}/{subresource}".rstrip("/")
                    rows = [row for row in writes_of(process) if (row.resource, row.verb) == (resource, "patch")]
                    may = any(is_listed(row, path) for row in rows)
                    assert (why == "") is may, (resource, path_text(path), why)
                    tried += 1
            assert tried > LEAST[plural]
            assert msgspec.json.decode(await admin.get(where, "default", "x")) == stored


def at(state: str, **annotations: str) -> Object:
    obj = whole("workflows")
    obj["status"]["state"] = state
    obj["metadata"]["annotations"] |= {key.replace("_", "-"): value for key, value in annotations.items()}
    return obj


@pytest.mark.parametrize("start", STATES)
def test_only_open_workflows_move_and_only_along_the_services_edges(policy: Policy, start: str) -> None:
    user = user_of("tink-server")
    for end in STATES:
        old, new = at(start), at(end)
        may = start in OPEN and (start == end or (start, end) in EDGES) and (start, end) != ("RUNNING", "PENDING")
        why = policy.refuses(user, "workflows", old, new, subresource="status")
        assert (why == "") is may, (start, end, why)


@pytest.mark.parametrize("process", ["wire", "tink-server"])
async def test_a_finished_workflow_stays_finished(process: str) -> None:
    """The attack: FAILED to PREPARING has the controller allow netboot, run the boot Job, and the agent erase disks."""
    async with serving() as server:
        admin = server.client(ADMIN)
        await put(admin, "workflows", at("RUNNING"))
        for start in STATES:
            body = msgspec.json.encode({"status": {"state": start}})
            await admin.patch(
                WORKFLOW.collection, "default", "x", body, patch_type=PatchType.MERGE, subresource="status"
            )
            for end in STATES:
                why = await patched(server, process, "workflows", {"status": {"state": end}}, subresource="status")
                may = start == end or (start, end) in EDGES
                may = may and (start, end) != ("RUNNING", "PENDING")
                assert (why == "") is may, (start, end, why)
                if (start, end) == ("FAILED", "PREPARING"):
                    assert why == (
                        f"{user_of(process)} may not change status.state of workflows/status x: its state is "
                        '"FAILED", and only that of a Workflow in state PENDING or RUNNING is open to reports'
                    )
            if start not in OPEN:
                for path, old, new in every_change("workflows"):
                    if path[0] == "status" and path != ("status", "state"):
                        change = patch_between(old, new)
                        assert await patched(server, process, "workflows", change, subresource="status"), path_text(
                            path
                        )


def test_a_workflow_begins_again_only_where_a_person_said_so(policy: Policy) -> None:
    user = user_of("wire")
    for value in ("restart", " Restart "):
        old, new = at("RUNNING"), at("PENDING")
        for obj in (old, new):
            obj["metadata"]["annotations"][names.ON_REBOOT] = value
        assert policy.refuses(user, "workflows", old, new, subresource="status") == ""
    for value in ("resume", "fail", ""):
        old, new = at("RUNNING"), at("PENDING")
        for obj in (old, new):
            obj["metadata"]["annotations"][names.ON_REBOOT] = value
        assert policy.refuses(user, "workflows", old, new, subresource="status")


async def test_beginning_again_in_the_embedded_api() -> None:
    async with serving() as server:
        admin = server.client(ADMIN)
        await put(admin, "workflows", at("RUNNING"))
        change = {"status": {"state": "PENDING", "currentState": None}}
        why = await patched(server, "wire", "workflows", change, subresource="status")
        assert "only a Workflow with annotation ironbell.dev/on-reboot: restart begins again" in why
        body = msgspec.json.encode({"metadata": {"annotations": {names.ON_REBOOT: "restart"}}})
        await admin.patch(WORKFLOW.collection, "default", "x", body, patch_type=PatchType.MERGE)
        assert await patched(server, "wire", "workflows", change, subresource="status") == ""
        other = {"status": {"agentID": "another"}}
        assert '"another" is not the agent' in await patched(server, "wire", "workflows", other, subresource="status")


@pytest.mark.parametrize(
    "change",
    [
        {"involvedObject": {**EVENT_FIELDS["involvedObject"], "kind": "Secret"}},
        {"involvedObject": {**EVENT_FIELDS["involvedObject"], "apiVersion": "v1"}},
        {"source": {"component": "ironbell"}},
        {"reportingComponent": "ironbell"},
    ],
)
async def test_events_are_about_hardware_and_name_their_source(policy: Policy, change: Object) -> None:
    user = user_of("smee")
    right = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}, **EVENT_FIELDS}
    wrong = {**right, **change}
    assert policy.refuses(user, "events", None, right) == ""
    assert policy.refuses(user, "events", None, wrong)
    old = {**right, "source": {"component": "kubelet"}}
    assert policy.refuses(user, "events", old, {**old, "count": 2})
    async with serving() as server:
        api = server.client(Identity(user, SERVICE_GROUPS))
        with pytest.raises(Forbidden, match="may not create events e"):
            await api.create(EVENTS, "default", msgspec.json.encode(wrong))
        await api.create(EVENTS, "default", msgspec.json.encode(right))


def test_what_the_api_server_writes_itself_may_change(policy: Policy) -> None:
    """Found on a real one: no repetition of an Event was counted, since each changes who manages the count."""
    old = whole("events")
    new = {**copy.deepcopy(old), "count": 2, "lastTimestamp": "2026-01-01T00:00:05Z"}
    for obj, number in ((old, "1"), (new, "2")):
        fields = [{"manager": "ironbell-wire", "time": f"2026-01-01T00:00:0{number}Z"}]
        obj["metadata"] |= {"resourceVersion": number, "managedFields": fields}
    assert policy.refuses(user_of("wire"), "events", old, new) == ""
    new["metadata"]["labels"] = {"key": "b"}
    assert policy.refuses(user_of("wire"), "events", old, new)


@pytest.mark.parametrize("process", PROCESSES)
async def test_no_object_of_our_kinds_is_created_or_deleted(policy: Policy, process: str) -> None:
    """Nor by applying one that does not exist."""
    user = user_of(process)
    if process in DEPLOYED:
        for plural in ("hardware", "workflows"):
            assert policy.refuses(user, plural, None, whole(plural))
    async with serving() as server:
        api = server.client(Identity(user, SERVICE_GROUPS))
        for kind in (HARDWARE, WORKFLOW):
            body = {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "metadata": {"name": "y", "namespace": "default"},
            }
            encoded = msgspec.json.encode(body)
            with pytest.raises(Forbidden):
                await api.create(kind.collection, "default", encoded)
            options = WriteOptions(field_manager="m")
            with pytest.raises(Forbidden):
                await api.patch(kind.collection, "default", "y", encoded, patch_type=PatchType.APPLY, options=options)
            await server.client(ADMIN).create(kind.collection, "default", encoded)
            with pytest.raises(Forbidden):
                await api.delete(kind.collection, "default", "y")


def test_others_are_not_concerned(policy: Policy) -> None:
    assert policy.refuses("kubernetes-admin", "workflows", at("FAILED"), at("PREPARING"), subresource="status") == ""


def test_roles_and_table_say_the_same() -> None:
    """What a component's role lets it write is what the table has rows for."""
    for component in COMPONENTS:
        if component.name not in COMPONENTS_OF:
            continue
        ruled = {
            (group, resource, verb)
            for rule in component.rules
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
            if verb not in {"get", "list", "watch"}
        }
        assert ruled == {(row.where.group, row.resource, row.verb) for row in writes_of(component.name)}
    assert {component.name for component in members("wire")} == set(COMPONENTS_OF["wire"])


def test_templates_are_none_of_it() -> None:
    assert TEMPLATE.plural not in {row.where.plural for row in TABLE}
