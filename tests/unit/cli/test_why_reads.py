"""`ironbell why` where not everything may be read, or not every kind is installed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ironbell.cli import session
from ironbell.cli.main import cli
from support.servers.whyworld import CLUSTER, KCP, PLANE, Objects, host, machine


def asked(monkeypatch: pytest.MonkeyPatch, api: Objects, *arguments: str) -> Result:
    @asynccontextmanager
    async def connected(*_: Any) -> AsyncIterator[Objects]:
        yield api

    monkeypatch.setattr(session, "connected", connected)
    return CliRunner().invoke(cli, ["why", *arguments, "-n", "site"])


def test_a_kind_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    done = asked(monkeypatch, Objects(CLUSTER), "hardware/s1")
    assert "the API has no kind Hardware of tinkerbell.org; is its provider installed?" in str(done.exception)
    done = asked(monkeypatch, Objects(CLUSTER), "cluster/two")
    assert 'No object named "two" exists among clusters.cluster.x-k8s.io in namespace "site"' in str(done.exception)


def test_a_kind_that_may_not_be_read_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = host("m", "WaitingForHardware", "all 12 Hardware are claimed")
    objects = (CLUSTER, KCP, machine("m", PLANE, "WaitingForHardware"), waits)
    api = Objects(*objects, forbidden=["tinkerbellmachines", "events", "hardware"])
    done = asked(monkeypatch, api, "one")
    assert done.exit_code == 0
    assert done.stdout.startswith("Machine site/m: ")
    assert "Not read: TinkerbellMachine site/m" in done.stdout
    (found,) = json.loads(asked(monkeypatch, api, "one", "-o", "json").stdout)
    assert found["leftOut"]
    missing = asked(monkeypatch, api, "nothing")
    assert "Not read, because access is forbidden: tinkerbellmachines" in str(missing.exception)
