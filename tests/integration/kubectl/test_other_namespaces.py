"""What the owner of one namespace can do to others' BMCs: with kubectl, against `ironbell up`.

Each attack asserts on what the BMCs were sent, so that it says what happened and not only what was answered.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ironbell.apiserver.access.kubeconfig import Credentials, kubeconfig, write_kubeconfig
from support.network.redfish import Service, redfish_service
from support.programs.kubectl import Kubectl
from support.site.components import ironbell
from support.site.embeddedcluster import EmbeddedCluster
from support.waiting import until

MACHINES = "machines.bmc.tinkerbell.org"
RECORDED, CONFIRMED = "ironbell.dev/bmc-address", "ironbell.dev/bmc-address-confirmed"
OWNER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: owner}
rules:
- {apiGroups: [bmc.tinkerbell.org, tinkerbell.org], resources: ["*"], verbs: ["*"]}
- {apiGroups: [cluster.x-k8s.io, infrastructure.cluster.x-k8s.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [""], resources: [secrets], resourceNames: [own], verbs: [get]}
"""
USER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: user}
rules:
- {apiGroups: [bmc.tinkerbell.org], resources: [machines], resourceNames: [node-1], verbs: [use]}
"""


@dataclass(frozen=True)
class Site:
    """Two teams, each with a namespace; `ann` owns the first. The second has a Secret with the password of its BMC."""

    admin: Kubectl
    ann: Kubectl
    own: str
    other: str
    bmc: Service
    """Of the other team."""
    trap: Service
    """Of ann, who waits for passwords."""

    def machine(self, name: str, bmc: Service, namespace: str, secret: str, where: str, **annotations: str) -> str:
        connection = {
            "host": "127.0.0.1",
            "insecureTLS": True,
            "authSecretRef": {"name": secret, "namespace": where},
            "providerOptions": {"redfish": {"port": bmc.port}},
        }
        return document("Machine", name, namespace, {"connection": connection}, annotations)

    def job(self, name: str, namespace: str, machine: str, where: str) -> str:
        reference = {"name": machine, "namespace": where}
        return document("Job", name, namespace, {"machineRef": reference, "tasks": [{"powerAction": "on"}]})


def document(
    kind: str, name: str, namespace: str, spec: dict[str, Any], annotations: dict[str, str] | None = None
) -> str:
    metadata = {"name": name, "namespace": namespace, "annotations": annotations or {}}
    return json.dumps({"apiVersion": "bmc.tinkerbell.org/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    folder = tmp_path_factory.mktemp("namespaces")
    tokens = folder / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text("token-of-ann,ann,u1,team-a\n")
    cluster = EmbeddedCluster(folder, ("--token-auth-file", str(tokens)))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
async def site(cluster: EmbeddedCluster, kubectl_binary: Path, tmp_path: Path) -> AsyncIterator[Site]:
    admin = Kubectl(kubectl_binary, cluster.kubeconfig, tmp_path)
    shown = json.loads(await admin.ok("config", "view", "--raw", "-o", "json"))["clusters"][0]["cluster"]
    content = kubeconfig(
        server=shown["server"],
        authority_pem=base64.b64decode(shown["certificate-authority-data"]),
        user="ann",
        credentials=Credentials(token="token-of-ann"),
        name="site",
    )
    ann = Kubectl(kubectl_binary, write_kubeconfig(tmp_path / "ann", content), tmp_path)
    own, other = f"a-{uuid4().hex[:6]}", f"b-{uuid4().hex[:6]}"
    for namespace in (own, other):
        await admin.ok("create", "namespace", namespace)
    await admin.ok("apply", "-n", own, "-f", "-", stdin=OWNER)
    await admin.ok("create", "rolebinding", "owner", "--role=owner", "--user=ann", "-n", own)
    for namespace, name in ((other, "idrac"), (own, "own"), (own, "site")):
        keys = ("--from-literal=username=admin", "--from-literal=password=right")
        await admin.ok("create", "secret", "generic", name, "-n", namespace, *keys)
    async with redfish_service(tmp_path / "bmc") as bmc, redfish_service(tmp_path / "trap") as trap:
        made = Site(admin, ann, own, other, bmc, trap)
        await admin.ok("apply", "-f", "-", stdin=made.machine("node-1", bmc, other, "idrac", other))
        yield made
        for namespace in (own, other):
            await admin.ok("delete", "namespace", namespace, "--wait=false")


async def shown(kubectl: Kubectl, namespace: str, name: str, path: str) -> str:
    return await kubectl.ok("get", MACHINES, name, "-n", namespace, "-o", f"jsonpath={path}")


async def condition(site: Site, name: str, wanted: str) -> str:
    """What a Machine's condition says, once it says that or the trap has a password."""
    path = '{.status.conditions[?(@.type=="Contactable")].message}'

    async def message() -> str:
        found = await shown(site.admin, site.own, name, path)
        assert wanted in found or site.trap.passwords, found
        return found

    return await until(message)


async def lands(outcome: int, bmc: Service) -> None:
    """Give an attack that the API has let through the time to do its harm."""
    if outcome == 0:
        await until(lambda: bool(bmc.passwords or bmc.resets), "the attack")


async def test_a_password_of_another_namespace_is_not_sent_to_ones_own_bmc(site: Site) -> None:
    outcome = await site.ann.run(
        "apply", "-f", "-", stdin=site.machine("trap", site.trap, site.own, "idrac", site.other)
    )
    await lands(outcome.code, site.trap)
    assert site.trap.passwords == []
    assert f'spec.connection.authSecretRef names Secret "{site.other}/idrac", and user "ann" may not get' in outcome.err
    assert f'a Role in namespace "{site.other}" with the verb "get" on secrets' in outcome.err


async def test_a_task_sends_no_password_of_another_namespace(site: Site) -> None:
    connection = json.loads(site.machine("x", site.trap, site.own, "idrac", site.other))["spec"]["connection"]
    task = document("Task", "trap", site.own, {"connection": connection, "task": {"powerAction": "status"}})
    outcome = await site.ann.run("apply", "-f", "-", stdin=task)
    await lands(outcome.code, site.trap)
    assert site.trap.passwords == []
    assert "is forbidden: spec.connection.authSecretRef names Secret" in outcome.err


async def test_a_machine_of_another_namespace_is_not_powered(site: Site) -> None:
    await until(lambda: bool(site.bmc.passwords), "the first contact")
    site.bmc.requests.clear()
    outcome = await site.ann.run("apply", "-f", "-", stdin=site.job("off", site.own, "node-1", site.other))
    if outcome.code == 0:
        await until(lambda: bool(site.bmc.resets), "the attack")
    assert site.bmc.resets == []
    assert f'spec.machineRef names Machine "{site.other}/node-1", and user "ann" may neither use' in outcome.err

    await site.admin.ok("apply", "-n", site.other, "-f", "-", stdin=USER)
    await site.admin.ok("create", "rolebinding", "user", "--role=user", "--user=ann", "-n", site.other)
    await site.ann.ok("apply", "-f", "-", stdin=site.job("on", site.own, "node-1", site.other))
    await until(lambda: bool(site.bmc.resets), "the power on of a Job that is allowed")


async def test_a_changed_address_gets_no_password_until_it_is_confirmed(site: Site) -> None:
    lent = site.machine("lent", site.bmc, site.own, "idrac", site.other)
    await site.admin.ok("apply", "-f", "-", stdin=lent)
    await until(lambda: bool(site.bmc.passwords), "the first use")
    change = json.dumps({"spec": {"connection": {"providerOptions": {"redfish": {"port": site.trap.port}}}}})
    patch = ("patch", MACHINES, "lent", "-n", site.own, "--type=merge", "-p")
    outcome = await site.ann.run(*patch, change)
    message = await condition(site, "lent", "BMCAddressNotConfirmed: ")
    assert site.trap.passwords == []
    assert "it is accepted because it was set before" in outcome.err
    address = f"127.0.0.1:{site.trap.port}"
    assert f"is used with the BMC at 127.0.0.1:{site.bmc.port}, and the Machine now names {address}" in message
    command = f"kubectl annotate {MACHINES} lent -n {site.own} --overwrite {CONFIRMED}={address}"
    assert f"`{command}`" in message
    why = ironbell("why", "--kubeconfig", site.admin.kubeconfig, "-n", site.own, f"{MACHINES}/lent", status=0)
    assert command in " ".join(why.split())

    for value in (f"{CONFIRMED}={address}", f"{RECORDED}={address}", f"{RECORDED}-"):
        refused = await site.ann.fails("annotate", MACHINES, "lent", "-n", site.own, "--overwrite", value)
        assert "determines which address gets the password of this BMC" in refused
    assert site.trap.passwords == []

    await site.admin.ok(*command.split()[1:])
    await until(lambda: bool(site.trap.passwords), "the use of the confirmed address")
    await until_recorded(site, "lent", address)


async def until_recorded(site: Site, name: str, address: str) -> None:
    async def is_recorded() -> bool:
        path = "{.metadata.annotations.ironbell\\.dev/bmc-address}"
        return await shown(site.admin, site.own, name, path) == address

    await until(is_recorded)


async def test_ones_own_namespace_needs_no_right(site: Site) -> None:
    await site.ann.ok("apply", "-f", "-", stdin=site.machine("mine", site.bmc, site.own, "site", site.own))
    await site.ann.ok("apply", "-f", "-", stdin=site.job("mine", site.own, "mine", site.own))
    await until(lambda: bool(site.bmc.resets), "the power on")
    await until_recorded(site, "mine", f"127.0.0.1:{site.bmc.port}")
    refused = await site.ann.fails("annotate", MACHINES, "mine", "-n", site.own, f"{CONFIRMED}=127.0.0.1")
    assert f'user "ann" may not get secrets site in namespace "{site.own}"' in refused


async def test_a_cluster_does_not_use_templates_and_classes_of_others(site: Site) -> None:
    group = "infrastructure.cluster.x-k8s.io/v1beta1"
    reference = {"templateOverrideRef": {"name": "install", "namespace": site.other}}
    for kind, spec in (
        ("TinkerbellCluster", reference),
        ("TinkerbellClusterTemplate", {"template": {"spec": reference}}),
    ):
        body = {"apiVersion": group, "kind": kind, "metadata": {"name": "x", "namespace": site.own}, "spec": spec}
        refused = await site.ann.fails("apply", "-f", "-", stdin=json.dumps(body))
        assert f'templateOverrideRef names Template "{site.other}/install", and user "ann" may not get' in refused
        await site.admin.ok("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(body))
