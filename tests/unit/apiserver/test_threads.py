"""Requests that need a thread are answered whatever keeps the threads of the rest of the process."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading

import pytest

from ironbell.api.client import Invalid
from ironbell.api.kind import Collection
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.content import answers
from ironbell.apiserver.threads import BRIEF_S, evaluated, in_thread
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from ironbell.codec import effort
from ironbell.codec.cel import compile_rule

from .conftest import CRDS, Caller


async def test_the_api_has_threads_of_its_own() -> None:
    released = threading.Event()
    shared = min(32, (os.cpu_count() or 1) + 4)
    taken = [asyncio.create_task(asyncio.to_thread(released.wait)) for _ in range(2 * shared)]
    await asyncio.sleep(0)  # each of them is in line for a thread now
    try:
        async with asyncio.timeout(5):
            body = b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[]}'
            large = body[:-2] + b",".join([b'{"metadata":{"name":"a"}}'] * 20_000) + b"]}"
            assert (await answers._protobuf(large)).startswith(b"k8s\0")
    finally:
        released.set()
        await asyncio.gather(*taken)


async def test_work_sees_the_context_of_its_request_and_its_errors_arrive() -> None:
    variable = contextvars.ContextVar("variable", default="")
    variable.set("request")
    assert await in_thread(variable.get) == "request"
    with pytest.raises(ValueError, match="invalid literal"):
        await in_thread(int, "x")


async def test_brief_expressions_are_evaluated_at_once() -> None:
    def work() -> int:
        effort.spend(BRIEF_S / 2)
        return threading.get_ident()

    assert await evaluated(work) == threading.get_ident()


@pytest.mark.parametrize("fails", [True, False])
async def test_long_expressions_leave_the_event_loop_free(fails: bool) -> None:
    ours, answered = threading.get_ident(), threading.Event()

    def work() -> bool:
        """As what evaluates rules does, which may make an error of an allowance that is used up."""
        try:
            with effort.limited(1.0):
                effort.spend(2 * BRIEF_S)
        except effort.TooMuchEffort:
            if fails:
                raise
            return False
        assert threading.get_ident() != ours
        return answered.wait(5)

    asyncio.get_running_loop().call_later(0, answered.set)
    assert await evaluated(work)


async def test_others_are_answered_while_rules_are_asked() -> None:
    numbers = {"type": "array", "items": {"type": "integer"}, "maxItems": 600}
    rule = {"rule": "self.all(x, self.all(y, x + y >= 0)) && self.size() == 0", "message": "no"}
    spec = {"type": "object", "properties": {"l": {**numbers, "x-kubernetes-validations": [rule]}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "loops.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"plural": "loops", "kind": "Loop"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }  # fmt: skip
    value = {
        "apiVersion": "example.org/v1", "kind": "Loop", "metadata": {"name": "one"},
        "spec": {"l": [*range(200)]},
    }  # fmt: skip
    async with ApiServer.open(
        None,
        clock=ManualClock(),
        randomness=SeededRandomness(1),
        definitions=[definition],
        compile_rule=compile_rule,
    ) as server:
        admin = Caller(server)
        await admin.settle()
        begun = asyncio.create_task(admin.create(Collection("example.org", "v1", "loops", namespaced=True), value))
        answered = 0
        while not begun.done():
            await admin.names(CRDS)
            await asyncio.sleep(0)
            answered += 1
        with pytest.raises(Invalid):
            await begun
    # One is answered before the request begins, whatever it does then.
    assert answered > 3
