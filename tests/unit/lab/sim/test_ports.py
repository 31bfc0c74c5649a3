"""Ports of simulated clusters: each cluster keeps its own, and simulations on one machine do not share any."""

from __future__ import annotations

from contextlib import closing

from ironbell.lab.sim.serving.serving import Ports

HOST = "127.0.0.1"


def test_a_cluster_keeps_its_port() -> None:
    with closing(Ports(HOST)) as ports:
        one, two = (ports.endpoint(("default", name)) for name in ("one", "two"))
        assert one.port != two.port
        assert ports.endpoint(("default", "one")) == one


def test_a_port_belongs_to_one_simulation_before_its_cluster_answers() -> None:
    with closing(Ports(HOST)) as first, closing(Ports(HOST)) as second:
        taken = {first.endpoint(("default", str(number))).port for number in range(5)}
        assert not taken & {second.endpoint(("default", str(number))).port for number in range(5)}
