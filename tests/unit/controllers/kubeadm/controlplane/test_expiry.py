"""Certificates of control plane hosts: when they end is asked for once, kept, and rolled out by."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.cluster.machine import MACHINE
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.controllers.kubeadm.controlplane.workload.expiry import port
from ironbell.kube.testing.world import World
from support.kubeadm.controlplane import NS, machines, plane_world, run

EXPIRY = "machine.cluster.x-k8s.io/certificates-expiry"


def written(world: World) -> dict[str, str]:
    configs = world.list(KUBEADM_CONFIG, NS)
    return {config.metadata.name: config.metadata.annotations.get(EXPIRY, "") for config in configs}


def test_each_api_server_is_asked_once_and_its_config_keeps_the_answer() -> None:
    world = plane_world(3)
    run(world)
    ends = {name: parse_rfc3339(host.since) + timedelta(days=365) for name, host in world.outside.hosts.items()}
    assert written(world) == {name: rfc3339(end) for name, end in ends.items()}
    world.outside.certificate_lifetime = timedelta(days=30)
    before = written(world)
    run(world, 7200)
    assert written(world) == before


def test_where_the_annotation_is_taken_off_the_api_server_is_asked_again() -> None:
    world = plane_world(1)
    run(world)
    (config,) = world.list(KUBEADM_CONFIG, NS)
    world.outside.certificate_lifetime = timedelta(days=730)
    world.change(KUBEADM_CONFIG, config, {"metadata": {"annotations": {EXPIRY: None}}})
    world.facts.clear()
    run(world)
    (end,) = written(world).values()
    assert parse_rfc3339(end) > world.now() + timedelta(days=700)


def test_machines_are_replaced_before_their_certificates_end() -> None:
    world = plane_world(1, rollout={"before": {"certificatesExpiryDays": 21}})
    world.outside.certificate_lifetime = timedelta(days=21, hours=2)
    run(world)
    (old,) = machines(world)
    end = written(world)[old.metadata.name]
    # the Machine's controller takes it over
    old = world.set_status(MACHINE, old, {"certificatesExpiryDate": end})
    run(world, 3600)
    assert [machine.metadata.name for machine in machines(world)] == [old.metadata.name]
    run(world, 2 * 3600)
    (new,) = machines(world)
    assert new.metadata.name != old.metadata.name
    assert parse_rfc3339(written(world)[new.metadata.name]) > parse_rfc3339(end)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, 6443),
        ({"initConfiguration": {"localAPIEndpoint": {"bindPort": 443}}}, 443),
        ({"joinConfiguration": {"controlPlane": {"localAPIEndpoint": {"bindPort": 8443}}}}, 8443),
        ({"joinConfiguration": {"controlPlane": {}}}, 6443),
    ],
)
def test_the_port_is_the_one_that_kubeadm_is_told(spec: dict[str, object], expected: int) -> None:
    world = World()
    config = world.add(KUBEADM_CONFIG, {"metadata": {"name": "c", "namespace": NS}, "spec": spec})
    assert port(config) == expected
