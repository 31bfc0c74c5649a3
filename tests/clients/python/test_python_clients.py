"""kr8s, the official Python client and a kopf operator, each in a process of its own and with its own dependencies."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from support.api.kubeapi import KubeApi, connect
from support.waiting import eventually

HERE = Path(__file__).parent
RUN_TIMEOUT_S = 90
GROUP = "kopf.test.ironbell.dev"
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def start(python: Path, *arguments: str, kubeconfig: Path, folder: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        python, *arguments, cwd=folder, env={"KUBECONFIG": str(kubeconfig), "HOME": str(folder), "PATH": os.defpath},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["official_client", "kr8s_client"])
async def test_clients_take_every_step(name: str, client_python: Path, kubeconfig: Path, tmp_path: Path) -> None:
    process = await start(client_python, str(HERE / f"{name}.py"), kubeconfig=kubeconfig, folder=tmp_path)
    async with asyncio.timeout(RUN_TIMEOUT_S):
        out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()[-2000:]
    assert out.decode().splitlines()[-1] == "done"


def definition(group: str, kind: str, plural: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": FREE, "status": FREE}}
    if group == "kopf.dev":
        schema = {"type": "object", "properties": {"status": FREE}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural}, "versions": [version],
        },
    }  # fmt: skip


@pytest.fixture
async def lamps(client_python: Path, kubeconfig: Path, tmp_path: Path) -> AsyncIterator[tuple[KubeApi, str]]:
    """A running operator, the API, and the namespace that it looks at."""
    api = connect("", kubeconfig)
    namespace = f"kopf-{uuid4().hex[:8]}"
    definitions = [definition(GROUP, "Lamp", "lamps"), definition("kopf.dev", "KopfPeering", "kopfpeerings")]
    api.made("/api/v1/namespaces", {"metadata": {"name": namespace}})
    for one in definitions:
        api.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", one)
    peering = {"apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": {"name": "ironbell-test"}}
    peerings = f"/apis/kopf.dev/v1/namespaces/{namespace}/kopfpeerings"
    await asyncio.to_thread(eventually, lambda: api.post(peerings, peering).status == 201)
    arguments = ["-m", "kopf", "run", "-n", namespace, "--dev", str(HERE / "lamp_operator.py")]
    with (tmp_path / "operator.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            client_python, *arguments, cwd=tmp_path, stdout=log, stderr=log,
            env={"KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path), "PATH": os.defpath},
        )  # fmt: skip
    try:
        yield api, namespace
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            assert await process.wait() == 0, (tmp_path / "operator.log").read_text()[-2000:]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        for one in definitions:
            api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{one['metadata']['name']}")
        api.delete(f"/api/v1/namespaces/{namespace}")


async def test_kopf_operator(lamps: tuple[KubeApi, str]) -> None:
    api, namespace = lamps
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/lamps"
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    lamp = {"apiVersion": f"{GROUP}/v1", "kind": "Lamp", "metadata": {"name": "one"}, "spec": {"colour": "red"}}

    def has(colour: str) -> bool:
        found = api.get(f"{path}/one").json
        child = api.get(f"{maps}/one-child").json
        return (found.get("status") or {}).get("colour") == colour == (child.get("data") or {}).get("colour")

    await asyncio.to_thread(eventually, lambda: api.get(f"{path[:-6]}/lamps").status == 200)
    api.made(path, lamp)
    await asyncio.to_thread(eventually, lambda: has("red"))
    found = api.get(f"{path}/one").json
    assert found["metadata"]["finalizers"] == [f"{GROUP}/finalizer"]
    assert "kopf.zalando.org/last-handled-configuration" in found["metadata"]["annotations"]
    [owner] = api.get(f"{maps}/one-child").json["metadata"]["ownerReferences"]
    assert owner["uid"] == found["metadata"]["uid"]
    api.patch(f"{path}/one", {"spec": {"colour": "green"}})
    await asyncio.to_thread(eventually, lambda: has("green"))
    events = f"/api/v1/namespaces/{namespace}/events"
    await asyncio.to_thread(
        eventually, lambda: any(event["reason"] == "Lit" for event in api.get(events).json["items"])
    )
    peers = api.get(f"/apis/kopf.dev/v1/namespaces/{namespace}/kopfpeerings/ironbell-test").json
    assert peers["status"]
    api.delete(f"{path}/one")
    await asyncio.to_thread(eventually, lambda: api.get(f"{path}/one").status == 404)
    assert api.get(f"{maps}/one-off").status == 200
