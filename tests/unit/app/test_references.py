"""Who may refer to other namespaces: the same answers from the embedded API and from the webhook on a cluster."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.api.client import Forbidden, Unavailable
from ironbell.api.kind import Collection, Kind
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Attributes, Binding, Role, RoleAuthorizer, Rule
from ironbell.apiserver.admission import Admission, AdmissionRequest, Operation
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.schema.compiled import plain_shape
from ironbell.apiserver.warnings import collecting
from ironbell.app.admission.embedded import check_references
from ironbell.app.admission.reference_webhook import REFERENCES_PATH, REVIEWS, reference_handler
from ironbell.app.install.options import InstallOptions
from ironbell.app.install.webhooks import webhooks
from ironbell.app.site.controllers import grant_controllers, identity
from ironbell.controllers.rufio.job import JobReconciler
from ironbell.controllers.rufio.machine import MachineReconciler
from ironbell.provisioner.bmc_address import ADDRESS, CONFIRMED

Object = dict[str, Any]
Answer = tuple[str, list[str]]
"""Why a write is rejected, empty if it is not; and its warnings."""

ANN, BOB, JANE = Identity("ann"), Identity("bob"), Identity("jane", ("keepers",))
SECRETS = Rule(("get",), ("secrets",), resource_names=("idrac",))
USES = Rule(("use",), ("machines",), ("bmc.tinkerbell.org",), ("node-1",))
CREATES = Rule(("create",), ("jobs",), ("bmc.tinkerbell.org",))
JOBS = identity(JobReconciler.name)
MACHINES = identity(MachineReconciler.name)


def authorizer() -> RoleAuthorizer:
    """Ann has nothing, Bob may use one Machine, the keepers read one Secret and create Jobs; and the controllers."""
    found = RoleAuthorizer()
    grant_controllers(found)
    found.grant(Role("uses", (USES,)), [Binding("uses", users=("bob",), namespace="b")])
    found.grant(Role("keeps", (SECRETS, CREATES)), [Binding("keeps", groups=("keepers",), namespace="b")])
    return found


async def embedded(kind: Kind[Any], writer: Identity, new: Object, old: Object | None) -> Answer:
    admission = Admission()
    check_references(admission, authorizer())
    shape = plain_shape({"type": "object"})
    info = ResourceInfo(kind.group, kind.version, kind.plural, kind.kind, namespaced=True, shape=shape)
    operation = Operation.CREATE if old is None else Operation.UPDATE
    with collecting() as warnings:
        try:
            await admission.review(AdmissionRequest(operation, info, "a", "x", writer, new=new, old=old))
        except Forbidden as error:
            return error.message, list(warnings)
    return "", list(warnings)


class Reviews:
    """An API server that answers SubjectAccessReviews."""

    def __init__(self) -> None:
        self.authorizer = authorizer()

    async def create(self, where: Collection, namespace: str, body: bytes) -> bytes:
        assert (where, namespace) == (REVIEWS, "")
        spec = msgspec.json.decode(body)["spec"]
        wanted = msgspec.convert(spec["resourceAttributes"], Attributes)
        decision = self.authorizer.decide(Identity(spec["user"], tuple(spec["groups"])), wanted)
        return msgspec.json.encode({"status": {"allowed": decision.allowed}})


async def webhook(kind: Kind[Any], writer: Identity, new: Object, old: Object | None) -> Answer:
    request = {
        "uid": "1",
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "name": "x",
        "namespace": "a",
        "userInfo": {"username": writer.user, "groups": writer.groups, "extra": {"scopes": ["all"]}},
        "object": new,
        "oldObject": old,
    }
    answer = await reference_handler(Reviews())(msgspec.json.encode({"request": request}))
    response = msgspec.json.decode(answer)["response"]
    assert response["allowed"] is ("status" not in response)
    return response.get("status", {}).get("message", ""), response.get("warnings", [])


WAYS = pytest.mark.parametrize("way", [embedded, webhook])


def job(namespace: str = "b") -> Object:
    reference = {"name": "node-1", "namespace": namespace}
    return {"metadata": {"name": "x", "namespace": "a"}, "spec": {"machineRef": reference, "tasks": []}}


def bmc(host: str = "192.0.2.7", namespace: str = "b", **annotations: str) -> Object:
    connection = {"host": host, "insecureTLS": True, "authSecretRef": {"name": "idrac", "namespace": namespace}}
    metadata = {"name": "x", "namespace": "a", "annotations": annotations}
    return {"metadata": metadata, "spec": {"connection": connection}}


@WAYS
@pytest.mark.parametrize(
    ("kind", "new", "writer", "allowed"),
    [
        (JOB, job(), ANN, False),
        (JOB, job(), BOB, True),
        (JOB, job(), JANE, True),
        (JOB, job("a"), ANN, True),
        (MACHINE, bmc(), ANN, False),
        (MACHINE, bmc(), BOB, False),
        (MACHINE, bmc(), JANE, True),
        (MACHINE, bmc(namespace="a"), ANN, True),
        (MACHINE, bmc(namespace=""), ANN, True),
        (TASK, bmc(), ANN, False),
        (TASK, bmc(), JANE, True),
        (TASK, bmc(), JOBS, True),
    ],
)
async def test_a_reference_needs_the_right_that_it_makes_use_of(
    way: Any, kind: Kind[Any], new: Object, writer: Identity, allowed: bool
) -> None:
    refused, warnings = await way(kind, writer, new, None)
    assert (refused == "") is allowed, refused
    assert warnings == []


@WAYS
async def test_the_refusal_names_reference_user_and_remedy(way: Any) -> None:
    assert (await way(JOB, ANN, job(), None))[0] == (
        'jobs.bmc.tinkerbell.org "x" is forbidden: spec.machineRef names Machine "b/node-1", and user "ann" may '
        'neither use machines.bmc.tinkerbell.org node-1 nor create jobs.bmc.tinkerbell.org in namespace "b". '
        'Name a Machine in namespace "a", or ask an administrator for a Role in namespace "b" with the verb "use" on '
        "machines.bmc.tinkerbell.org."
    )


@WAYS
async def test_what_was_there_before_keeps_working_with_a_warning(way: Any) -> None:
    old, new = job(), job()
    new["spec"]["tasks"] = [{"powerAction": "on"}]
    refused, (warning,) = await way(JOB, ANN, new, old)
    assert refused == ""
    assert warning.startswith('spec.machineRef names Machine "b/node-1", and user "ann" may neither use ')
    assert warning.endswith("it is accepted because it was set before. Setting it again would be rejected.")
    assert await way(JOB, BOB, new, old) == ("", [])
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert await way(JOB, ANN, labelled, old) == ("", []), "only the spec refers to something"
    changed = job()
    changed["spec"]["machineRef"]["name"] = "node-2"
    assert "node-2" in (await way(JOB, ANN, changed, old))[0]


@WAYS
async def test_a_task_that_goes_to_another_address_is_another_reference(way: Any) -> None:
    assert (await way(TASK, ANN, bmc("192.0.2.66"), bmc()))[0] != ""
    assert (await way(MACHINE, ANN, bmc("192.0.2.66"), bmc()))[0] == "", "there the recorded address counts"


@WAYS
@pytest.mark.parametrize(
    ("new", "old", "writer", "allowed"),
    [
        (bmc(**{CONFIRMED: "192.0.2.66"}), bmc(), ANN, False),
        (bmc(**{CONFIRMED: "192.0.2.66"}), bmc(), MACHINES, False),
        (bmc(**{CONFIRMED: "192.0.2.66"}), bmc(), JANE, True),
        (bmc(), bmc(**{CONFIRMED: "192.0.2.66"}), ANN, True),
        (bmc(**{ADDRESS: "192.0.2.7"}), bmc(), ANN, False),
        (bmc(**{ADDRESS: "192.0.2.7"}), bmc(), MACHINES, True),
        (bmc(**{ADDRESS: "192.0.2.7"}), bmc(), JOBS, True),
        (bmc(**{ADDRESS: "192.0.2.7"}), bmc(), JANE, True),
        (bmc(), bmc(**{ADDRESS: "192.0.2.7"}), ANN, False),
        (bmc(**{ADDRESS: "192.0.2.7"}), bmc(**{ADDRESS: "192.0.2.7"}), ANN, True),
        (bmc(namespace="a", **{CONFIRMED: "192.0.2.66"}), None, ANN, False),
    ],
)
async def test_only_who_may_read_the_secret_says_where_its_password_goes(
    way: Any, new: Object, old: Object | None, writer: Identity, allowed: bool
) -> None:
    refused, _ = await way(MACHINE, writer, new, old)
    assert (refused == "") is allowed, refused


async def test_what_cannot_be_looked_up_is_not_allowed() -> None:
    class Away(Reviews):
        async def create(self, where: Collection, namespace: str, body: bytes) -> bytes:
            raise Unavailable("away")

    body = {"request": {"uid": "1", "resource": {"group": JOB.group, "resource": JOB.plural}, "namespace": "a"}}
    body["request"]["object"] = job()
    with pytest.raises(Unavailable):
        await reference_handler(Away())(msgspec.json.encode(body))


def test_only_writes_that_cross_namespaces_depend_on_the_webhook() -> None:
    (made,) = webhooks(InstallOptions(image="i"))
    entries = [one for one in made["webhooks"] if one["clientConfig"]["service"]["path"] == REFERENCES_PATH]
    assert {one["rules"][0]["resources"][0] for one in entries} == {
        *("machines", "tasks", "jobs", "tinkerbellclusters", "tinkerbellclustertemplates", "clusters")
    }
    assert all(one["failurePolicy"] == "Fail" and one["matchConditions"] for one in entries)


def test_controllers_record_the_addresses_of_bmcs_while_the_webhook_is_away() -> None:
    (made,) = webhooks(InstallOptions(image="i", namespace="metal"))
    (entry,) = [one for one in made["webhooks"] if one["name"] == "machine-addresses.references.ironbell.dev"]
    expressions = [condition["expression"] for condition in entry["matchConditions"]]
    assert "!(request.userInfo.username in ['system:serviceaccount:metal:ironbell-rufio'])" in expressions
    others = [one for one in made["webhooks"] if one["name"].endswith(".references.ironbell.dev") and one is not entry]
    assert not any("userInfo" in condition["expression"] for one in others for condition in one["matchConditions"])
