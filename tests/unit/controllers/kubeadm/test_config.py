"""KubeadmConfigs to data: waits with their reasons, the init lock, certificates, discovery, and crashes."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.cluster.cluster import CLUSTER
from ironbell.api.cluster.machine import MACHINE
from ironbell.api.core.configmap import CONFIG_MAP
from ironbell.api.core.secret import SECRET, SECRET_METADATA
from ironbell.codec import goyaml
from ironbell.contract import pki
from ironbell.contract.clusters.secrets import Purpose, key_pair_of
from ironbell.controllers.kubeadm.config.lock import holder_of
from ironbell.kube.testing.crash import crash_check
from ironbell.kube.testing.world import NotSettledError, World
from support.kubeadm.world import (
    AUTHORITY,
    RECONCILER,
    SITE,
    add_cluster,
    add_machine,
    add_pairs,
    add_secret,
    config,
    data_of,
    file_of,
    initialize,
    join,
    legacy,
    new_world,
    said,
)

WAITS_FOR_CONTROL_PLANE = ("False", "NotAvailable", "Waiting for Cluster control plane to be initialized")
JOIN_FILE = "/run/kubeadm/kubeadm-join-config.yaml"
P256 = {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}}


@pytest.fixture
def world() -> World:
    return new_world()


def settle(world: World, horizon_s: float = 0.0) -> None:
    world.settle(RECONCILER, horizon_s=horizon_s)


def try_in_vain(world: World) -> None:
    """It fails, says so, and is tried again and again (with backoff, which a world does not have)."""
    with pytest.raises(NotSettledError):
        world.settle(RECONCILER, max_rounds=6)


def is_ready(world: World, name: str) -> bool:
    """Whether the data are there, and everything says so."""
    status = config(world, name).status
    created = bool(status.initialization.data_secret_created) and status.data_secret_name == name
    if created:
        assert {kind: state for kind, (state, _, _) in said(world, name).items()} == {
            "Ready": "True",
            "CertificatesAvailable": "True",
            "DataSecretAvailable": "True",
            "Paused": "False",
        }
        assert {kind: state for kind, (state, _, _) in legacy(world, name).items()} == dict.fromkeys(
            ("Ready", "CertificatesAvailable", "DataSecretAvailable"), "True"
        )
        assert status.observed_generation == config(world, name).metadata.generation
    return created


def lock(world: World) -> str:
    """Who holds the init lock."""
    found = world.get(CONFIG_MAP, SITE, "one-lock")
    return "" if found is None else holder_of(found)


def test_a_config_without_owner_or_cluster_waits_and_writes_nothing(world: World) -> None:
    world.add(KUBEADM_CONFIG, {"metadata": {"namespace": SITE, "name": "alone"}})
    add_machine(world, "w1")
    before = world.api.version
    decision = world.decide(RECONCILER, (SITE, "alone"))
    assert decision is not None
    assert decision.waiting is not None
    assert decision.waiting.reason == "WaitingForOwner"
    decision = world.decide(RECONCILER, (SITE, "w1"))
    assert decision is not None
    assert decision.waiting is not None
    assert (decision.waiting.reason, decision.waiting.message) == (
        "WaitingForCluster",
        "Cluster site/one does not exist.",
    )
    settle(world)
    assert world.api.version == before


def test_infrastructure_comes_first(world: World) -> None:
    add_cluster(world)
    world.set_status(
        CLUSTER, world.require(CLUSTER, SITE, "one"), {"initialization": {"infrastructureProvisioned": None}}
    )
    add_machine(world, "cp1", control_plane=True)
    settle(world)
    message = "Waiting for Cluster status.infrastructureReady to be true"
    assert said(world, "cp1")["DataSecretAvailable"] == ("False", "NotAvailable", message)
    assert legacy(world, "cp1")["DataSecretAvailable"] == ("False", "Info", "WaitingForClusterInfrastructure")
    assert legacy(world, "cp1")["Ready"] == ("False", "Info", "WaitingForClusterInfrastructure")


def test_the_first_control_plane_gets_the_lock_and_its_data(world: World) -> None:
    add_cluster(world)
    add_pairs(world)
    add_machine(world, "cp1", control_plane=True)
    settle(world)
    assert is_ready(world, "cp1")
    assert lock(world) == "cp1"
    documents = [d for d in goyaml.load_all(file_of(world, "cp1", "/run/kubeadm/kubeadm.yaml")) if d]
    assert [document["kind"] for document in documents] == ["ClusterConfiguration", "InitConfiguration"]
    assert documents[0]["controlPlaneEndpoint"] == "192.0.2.10:6443"
    assert documents[0]["clusterName"] == "one"
    assert documents[0]["kubernetesVersion"] == "v1.36.2"
    assert documents[0]["networking"] == {"podSubnet": "10.244.0.0/16"}
    assert file_of(world, "cp1", "/etc/kubernetes/pki/ca.crt") == AUTHORITY.certificate.decode()
    secret = world.require(SECRET, SITE, "cp1")
    assert secret.type == "cluster.x-k8s.io/secret"
    assert secret.metadata.labels == {"cluster.x-k8s.io/cluster-name": "one"}
    assert [(o.kind, o.name, o.controller) for o in secret.metadata.owner_references] == [
        ("KubeadmConfig", "cp1", True)
    ]
    assert base64.b64decode(secret.data["format"]) == b"cloud-config"


def test_of_two_only_one_initializes(world: World) -> None:
    add_cluster(world)
    add_pairs(world)
    add_machine(world, "cp1", control_plane=True)
    add_machine(world, "cp2", control_plane=True)
    add_machine(world, "w1")
    settle(world)
    assert is_ready(world, "cp1")
    assert world.get(SECRET, SITE, "cp2") is None
    message = "Waiting for Machine cp1, which initializes the control plane"
    assert said(world, "cp2")["DataSecretAvailable"] == ("False", "NotAvailable", message)
    assert said(world, "w1")["DataSecretAvailable"] == WAITS_FOR_CONTROL_PLANE
    assert legacy(world, "w1")["Ready"] == ("False", "Info", "WaitingForControlPlaneAvailable")


def test_the_lock_of_a_machine_that_is_gone_passes_on(world: World) -> None:
    add_cluster(world)
    add_pairs(world)
    add_machine(world, "cp1", control_plane=True)
    settle(world)
    world.remove(KUBEADM_CONFIG, config(world, "cp1"))
    world.remove(MACHINE, world.require(MACHINE, SITE, "cp1"))
    add_machine(world, "cp2", control_plane=True)
    settle(world)
    assert is_ready(world, "cp2")
    assert lock(world) == "cp2"


def test_the_lock_is_given_back_when_there_is_a_control_plane(world: World) -> None:
    add_cluster(world)
    add_pairs(world)
    add_machine(world, "cp1", control_plane=True)
    settle(world)
    initialize(world)
    settle(world)
    assert lock(world) == ""
    assert is_ready(world, "cp1")


def test_a_machine_whose_data_cannot_be_made_never_takes_the_lock(world: World) -> None:
    add_cluster(world)
    add_pairs(world)
    add_secret(world, "files", {"other": b"x"})
    reference = {"path": "/etc/x", "contentFrom": {"secret": {"name": "files", "key": "wanted"}}}
    add_machine(world, "cp1", control_plane=True, spec={"files": [reference]})
    add_machine(world, "cp2", control_plane=True)
    settle(world)
    assert lock(world) == "cp2"
    assert is_ready(world, "cp2")
    message = "spec.files[0].contentFrom.secret names key 'wanted', which Secret files does not have; add it"
    config_map_message = "Waiting for Machine cp2, which initializes the control plane"
    assert said(world, "cp1")["DataSecretAvailable"][2] in (message, config_map_message)


def test_without_a_control_plane_object_the_first_config_makes_the_certificates(world: World) -> None:
    add_cluster(world, control_plane=False)
    add_machine(world, "cp1", control_plane=True, spec=P256)
    settle(world)
    assert is_ready(world, "cp1")
    for purpose in (Purpose.CLUSTER_CA, Purpose.ETCD_CA, Purpose.FRONT_PROXY_CA):
        secret = world.require(SECRET, SITE, f"one-{purpose}")
        pki.check_pair(key_pair_of(secret))
        owners = [(o.kind, o.name, o.controller) for o in secret.metadata.owner_references]
        assert owners == [("KubeadmConfig", "cp1", True), ("Cluster", "one", None)]
    pki.check_service_account_keys(key_pair_of(world.require(SECRET, SITE, "one-sa")))
    certificate = key_pair_of(world.require(SECRET, SITE, "one-ca")).certificate.decode()
    assert file_of(world, "cp1", "/etc/kubernetes/pki/ca.crt") == certificate


def test_the_authority_outlives_the_machine_that_it_was_made_for(world: World) -> None:
    """Upstream's belongs to the first KubeadmConfig alone, and is collected with it."""
    add_cluster(world, control_plane=False)
    add_machine(world, "cp1", control_plane=True, spec=P256)
    settle(world)
    authority = key_pair_of(world.require(SECRET, SITE, "one-ca"))
    world.remove(KUBEADM_CONFIG, config(world, "cp1"))
    assert world.get(SECRET, SITE, "cp1") is None
    assert key_pair_of(world.require(SECRET, SITE, "one-ca")) == authority
    world.remove(CLUSTER, world.require(CLUSTER, SITE, "one"))
    assert world.get(SECRET, SITE, "one-ca") is None


def test_pairs_that_a_user_brought_are_kept(world: World) -> None:
    add_cluster(world, control_plane=False)
    add_pairs(world, Purpose.CLUSTER_CA)
    add_machine(world, "cp1", control_plane=True, spec=P256)
    settle(world)
    assert key_pair_of(world.require(SECRET, SITE, "one-ca")) == AUTHORITY
    assert is_ready(world, "cp1")


def test_with_a_control_plane_object_its_certificates_are_waited_for(world: World) -> None:
    add_cluster(world)
    add_pairs(world, Purpose.CLUSTER_CA)
    add_machine(world, "cp1", control_plane=True)
    settle(world)
    message = "Waiting for Secrets one-etcd, one-proxy, one-sa: the control plane's controller creates them"
    assert said(world, "cp1")["CertificatesAvailable"] == ("False", "NotAvailable", message)
    add_pairs(world, Purpose.ETCD_CA, Purpose.FRONT_PROXY_CA, Purpose.SERVICE_ACCOUNT)
    settle(world)
    assert is_ready(world, "cp1")


def test_the_pairs_of_an_external_etcd_are_the_users(world: World) -> None:
    add_cluster(world, control_plane=False)
    files = {"caFile": "/etc/e/ca.crt", "certFile": "/etc/e/client.crt", "keyFile": "/etc/e/client.key"}
    external = {"external": {"endpoints": ["https://192.0.2.5:2379"], **files}}
    add_machine(
        world,
        "cp1",
        control_plane=True,
        spec={"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256", "etcd": external}},
    )
    settle(world)
    assert said(world, "cp1")["CertificatesAvailable"][2].endswith("one-sa, one-apiserver-etcd-client: create them")
    add_secret(world, "one-etcd", {"tls.crt": AUTHORITY.certificate})
    add_pairs(world, Purpose.API_SERVER_ETCD_CLIENT)
    settle(world)
    assert is_ready(world, "cp1")
    assert file_of(world, "cp1", "/etc/e/ca.crt") == AUTHORITY.certificate.decode()
    assert file_of(world, "cp1", "/etc/e/client.key") == AUTHORITY.key.decode()


def test_corrupt_pairs_are_named(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world, Purpose.CLUSTER_CA, Purpose.ETCD_CA, Purpose.SERVICE_ACCOUNT)
    add_secret(world, "one-proxy", {"tls.crt": AUTHORITY.certificate, "tls.key": b"nonsense"})
    add_machine(world, "cp2", control_plane=True)
    try_in_vain(world)
    message = "Secret site/one-proxy is unusable: there is no unencrypted private key in PEM form"
    assert said(world, "cp2")["CertificatesAvailable"] == ("False", "NotAvailable", message)
    assert legacy(world, "cp2")["CertificatesAvailable"] == ("False", "Error", "CertificatesCorrupted")
    assert {error.message for error in world.errors} == {message}


def joined(world: World, name: str) -> dict[str, Any]:
    found: dict[str, Any] = goyaml.load(file_of(world, name, JOIN_FILE).removeprefix("---\n"))
    return found


def test_a_worker_joins(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_machine(world, "w1")
    settle(world)
    assert is_ready(world, "w1")
    token = config(world, "w1").spec.join_configuration.discovery.bootstrap_token
    assert token.api_server_endpoint == "192.0.2.10:6443"
    assert token.ca_cert_hashes == pki.certificate_hashes(AUTHORITY.certificate)
    document = joined(world, "w1")
    assert document["discovery"]["bootstrapToken"] == {
        "token": token.token,
        "apiServerEndpoint": token.api_server_endpoint,
        "caCertHashes": token.ca_cert_hashes,
    }
    taint = {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}
    assert document["nodeRegistration"]["taints"] == [taint]
    assert config(world, "w1").spec.join_configuration.node_registration.taints is None
    assert not [entry for entry in data_of(world, "w1")["write_files"] if "pki" in entry["path"]]


def test_a_control_plane_joins_with_all_certificates(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_machine(world, "cp2", control_plane=True)
    settle(world)
    assert is_ready(world, "cp2")
    document = joined(world, "cp2")
    assert document["controlPlane"] == {"localAPIEndpoint": {}}
    assert document["nodeRegistration"] == {"taints": None}
    assert file_of(world, "cp2", "/etc/kubernetes/pki/etcd/ca.key") == AUTHORITY.key.decode()
    assert lock(world) == ""


def test_a_worker_waits_for_the_endpoint(world: World) -> None:
    add_cluster(world, initialized=True, controlPlaneEndpoint={})
    add_pairs(world)
    add_machine(world, "w1")
    settle(world)
    message = "Waiting for Cluster spec.controlPlaneEndpoint to be set"
    assert said(world, "w1")["DataSecretAvailable"][2] == message


def test_a_worker_waits_for_a_connection(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    world.outside.connected = False
    add_machine(world, "w1")
    settle(world)
    message = "Waiting for a connection to the workload cluster: connection refused"
    assert said(world, "w1")["DataSecretAvailable"] == ("False", "NotAvailable", message)
    assert world.get(SECRET, SITE, "w1") is None
    world.outside.connected = True
    world.forget()
    settle(world)
    assert is_ready(world, "w1")


def test_discovery_that_the_user_gave_stays(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    given = {"token": "abcdef.0123456789abcdef", "apiServerEndpoint": "10.0.0.1:6443", "caCertHashes": ["sha256:00"]}
    add_machine(world, "w1", spec={"joinConfiguration": {"discovery": {"bootstrapToken": given}}})
    settle(world)
    assert joined(world, "w1")["discovery"]["bootstrapToken"] == given
    assert [token.metadata.name for token in world.outside.tokens()] == ["bootstrap-token-abcdef"]


def test_discovery_by_kubeconfig_needs_no_token_and_no_connection(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    world.outside.connected = False
    user = {"exec": {"command": "/usr/bin/token", "env": [{"name": "A", "value": "b"}]}}
    file = {"kubeConfigPath": "/etc/discovery.yaml", "kubeConfig": {"user": user}}
    add_machine(world, "w1", spec={"joinConfiguration": {"discovery": {"file": file}}})
    settle(world)
    assert is_ready(world, "w1")
    assert joined(world, "w1")["discovery"] == {"file": {"kubeConfigPath": "/etc/discovery.yaml"}}
    kubeconfig = goyaml.load(file_of(world, "w1", "/etc/discovery.yaml"))
    assert kubeconfig["clusters"] == [
        {
            "name": "default",
            "cluster": {
                "server": "https://192.0.2.10:6443",
                "certificate-authority-data": base64.b64encode(AUTHORITY.certificate).decode(),
            },
        }
    ]
    assert kubeconfig["users"][0]["user"]["exec"] == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "/usr/bin/token",
        "args": None,
        "env": [{"name": "A", "value": "b"}],
        "interactiveMode": "Never",
        "provideClusterInfo": False,
    }


def test_secrets_that_files_and_users_name_are_waited_for(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    spec = {
        "files": [{"path": "/etc/x", "contentFrom": {"secret": {"name": "files", "key": "x"}}}],
        "users": [{"name": "me", "passwdFrom": {"secret": {"name": "passwords", "key": "me"}}}],
    }
    add_machine(world, "w1", spec=spec)
    settle(world)
    message = (
        "spec.files[0].contentFrom.secret names Secret files, which does not exist; create it;"
        " spec.users[0].passwdFrom.secret names Secret passwords, which does not exist; create it"
    )
    assert said(world, "w1")["DataSecretAvailable"] == ("False", "NotAvailable", message)
    assert legacy(world, "w1")["DataSecretAvailable"] == ("False", "Warning", "DataSecretGenerationFailed")
    add_secret(world, "files", {"x": b"content\n"}, type="Opaque")
    add_secret(world, "passwords", {"me": b"$6$hash"}, type="Opaque")
    settle(world)
    assert is_ready(world, "w1")
    assert file_of(world, "w1", "/etc/x") == "content\n"
    assert data_of(world, "w1")["users"] == [{"name": "me", "passwd": "$6$hash"}]


def test_templates_in_files_know_the_control_planes_version(world: World) -> None:
    add_cluster(world, initialized=True, control_plane=False)
    add_pairs(world)
    content = "{{ if .controlPlane }}{{ .controlPlane.version }}{{ else }}unknown{{ end }}\n"
    add_machine(world, "w1", spec={"files": [{"path": "/etc/v", "content": content, "contentFormat": "Template"}]})
    settle(world)
    assert file_of(world, "w1", "/etc/v") == "unknown\n"


def test_a_template_that_does_not_render_is_named(world: World) -> None:
    add_cluster(world, initialized=True, control_plane=False)
    add_pairs(world)
    file = {"path": "/etc/v", "content": "a\n{{ nothing }}", "contentFormat": "Template"}
    add_machine(world, "w1", spec={"files": [file]})
    try_in_vain(world)
    status, reason, message = said(world, "w1")["DataSecretAvailable"]
    assert (status, reason) == ("False", "NotAvailable")
    assert message.startswith("spec.files[0] (/etc/v): template line 2:")


def test_a_version_that_is_too_old_is_refused(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_machine(world, "w1", version="v1.14.3")
    try_in_vain(world)
    assert said(world, "w1")["DataSecretAvailable"][2].startswith("spec.version v1.14.3 is not supported")


@pytest.mark.parametrize("size", [30_000, 900_000])
def test_large_files_are_no_matter(world: World, size: int) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_secret(world, "files", {"x": b"0123456789abcde\n" * (size // 16)}, type="Opaque")
    file = {"path": "/etc/x", "contentFrom": {"secret": {"name": "files", "key": "x"}}}
    add_machine(world, "w1", spec={"files": [file], "format": "ignition"})
    settle(world)
    assert is_ready(world, "w1")
    assert len(world.require(SECRET, SITE, "w1").data["value"]) > size


def test_data_that_no_secret_can_hold_are_refused(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_secret(world, "files", {"x": b"0123456789abcde\n" * 65_536}, type="Opaque")
    file = {"path": "/etc/x", "contentFrom": {"secret": {"name": "files", "key": "x"}}}
    add_machine(world, "w1", spec={"files": [file]})
    try_in_vain(world)
    assert said(world, "w1")["DataSecretAvailable"][2].endswith(
        "but a Secret holds at most 1048512. Shorten spec.files."
    )


def test_workers_may_try_to_join_more_than_once(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    for name, control_plane in (("w1", False), ("cp2", True)):
        add_machine(world, name, control_plane=control_plane)
        world.change(
            KUBEADM_CONFIG, config(world, name), {"metadata": {"annotations": {"ironbell.dev/join-attempts": "3"}}}
        )
    settle(world)
    assert data_of(world, "w1")["runcmd"] == [
        (
            "sh -c 'for try in 1 2 3; do kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml  && exit 0;"
            " [ $try = 3 ] || { kubeadm reset --force; sleep 10; }; done; exit 1'"
            " && echo success > /run/cluster-api/bootstrap-success.complete"
        )
    ]
    assert data_of(world, "cp2")["runcmd"][0].startswith("kubeadm join ")


@pytest.mark.parametrize("attempts", ["0", "11", "many", "-1", ""])
def test_a_number_of_attempts_that_makes_no_sense_is_refused(world: World, attempts: str) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_machine(world, "w1")
    annotations = {"ironbell.dev/join-attempts": attempts}
    world.change(KUBEADM_CONFIG, config(world, "w1"), {"metadata": {"annotations": annotations}})
    try_in_vain(world)
    message = f"annotation ironbell.dev/join-attempts {attempts!r} is not a number from 1 to 10"
    assert said(world, "w1")["DataSecretAvailable"][2] == message


def test_nothing_is_made_while_paused(world: World) -> None:
    add_cluster(world, initialized=True, paused=True)
    add_pairs(world)
    add_machine(world, "w1")
    settle(world)
    assert said(world, "w1") == {"Paused": ("True", "Paused", "Cluster spec.paused is set to true")}
    assert world.get(SECRET, SITE, "w1") is None
    world.change(CLUSTER, world.require(CLUSTER, SITE, "one"), {"spec": {"paused": None}})
    settle(world)
    assert is_ready(world, "w1")


def test_data_are_not_made_again(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_machine(world, "w1")
    settle(world)
    before = world.require(SECRET, SITE, "w1")
    world.change(KUBEADM_CONFIG, config(world, "w1"), {"spec": {"preKubeadmCommands": ["echo more"]}})
    settle(world)
    assert world.require(SECRET, SITE, "w1") == before


def test_a_restored_config_takes_over_what_its_machine_uses(world: World) -> None:
    """After a move or a restore there is no status, the uid is another, and nothing is made anew."""
    add_cluster(world, initialized=True)
    add_machine(world, "w1")
    machine = world.require(MACHINE, SITE, "w1")
    world.change(MACHINE, machine, {"spec": {"bootstrap": {"dataSecretName": "w1"}}})
    add_secret(world, "w1", {"value": b"as it was", "format": b"cloud-config"})
    secret = world.require(SECRET_METADATA, SITE, "w1")
    owner = {
        "apiVersion": KUBEADM_CONFIG.api_version,
        "kind": "KubeadmConfig",
        "name": "w1",
        "uid": "old",
        "controller": True,
    }
    world.change(SECRET, secret, {"metadata": {"ownerReferences": [owner]}})
    settle(world)
    assert is_ready(world, "w1")
    restored = world.require(SECRET, SITE, "w1")
    assert base64.b64decode(restored.data["value"]) == b"as it was"
    assert [o.uid for o in restored.metadata.owner_references] == [config(world, "w1").metadata.uid]


def test_a_secret_of_something_else_is_left_alone(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_machine(world, "w1")
    add_secret(world, "w1", {"value": b"x"})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "u", "controller": True}
    world.change(SECRET, world.require(SECRET, SITE, "w1"), {"metadata": {"ownerReferences": [owner]}})
    try_in_vain(world)
    assert said(world, "w1")["DataSecretAvailable"][2].startswith("Secret w1 belongs to another object")
    assert "SecretOfAnother" in {event.reason for event in world.emitted}


@pytest.mark.parametrize("role", ["init", "standalone", "join", "worker"])
def test_no_crash_loses_or_doubles_anything(world: World, role: str) -> None:
    add_cluster(world, initialized=role in ("join", "worker"), control_plane=role != "standalone")
    if role != "standalone":
        add_pairs(world)
    add_machine(world, "m1", control_plane=role != "worker", spec=P256)
    # keys and tokens are random, so contents differ; how many there are must not
    ignore = ("data", "spec.joinConfiguration.discovery.bootstrapToken.token", "metadata.annotations")
    end = crash_check(RECONCILER, world, ignore=ignore, outside=lambda workload: len(workload.tokens()))
    assert is_ready(end, "m1")
    assert len(end.outside.tokens()) == (role in ("join", "worker"))


def test_machines_come_with_few_writes(world: World) -> None:
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_machine(world, "w1")
    before = world.api.writes
    settle(world)
    join(world, "w1")
    settle(world)
    # discovery, the Secret, the status; and the machine's own nodeRef
    assert world.api.writes - before == 4
