"""A system is one folder and one line: a toy one, added to a copy of Ironbell, gets everything that systems have."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.api.kubeapi import KubeApi, connect
from support.ports import free_port
from support.waiting import eventually

ROOT = Path(__file__).parents[3]
LIST = "ironbell/app/systems.py"
LINE = '    "toy",\n'
TOYS = "/apis/toys.ironbell.dev/v1/namespaces/default/toys"
DEFINITION = "toys.toys.ironbell.dev"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
READY_S = 120.0


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with the toy: one folder, and one line in the list of systems."""
    copy = tmp_path_factory.mktemp("toys") / "src"
    shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copytree(ROOT / "tests/support/toysystem", copy / "ironbell/controllers/toy")
    text = (copy / LIST).read_text()
    before, head, folders = text.partition("_FOLDERS: Final = (\n")
    assert head
    (copy / LIST).write_text(before + head + folders.replace(")\n", LINE + ")\n", 1))
    return copy


def command(source: Path, *words: str) -> dict[str, Any]:
    """Arguments of a subprocess that runs the copy."""
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    return {"args": [sys.executable, "-m", "ironbell.cli.main", *words], "env": environment, "text": True}


def ironbell(source: Path, *words: str) -> str:
    """What a command of the copy prints."""
    done = subprocess.run(**command(source, *words), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def documents(text: str) -> dict[tuple[str, str], Any]:
    found = [document for document in yaml.safe_load_all(text) if document]
    return {(document["kind"], document["metadata"]["name"]): document for document in found}


@contextmanager
def running(source: Path, log: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A process of the copy, ended with the block."""
    with (
        log.open("w") as end,
        subprocess.Popen(**command(source, *words), stdout=subprocess.PIPE, stderr=end) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def site(source: Path, folder: Path, *options: str) -> Iterator[KubeApi]:
    """`ironbell up` of the copy, and its API."""
    log = folder.with_suffix(".log")
    with running(source, log, "up", "--data-dir", str(folder), *options) as process:
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], READY_S)
        line = process.stdout.readline() if readable else ""
        assert line.startswith("ready "), log.read_text()[-3000:]
        yield connect("toys", folder / "kubeconfig")


def toy(name: str, size: int) -> dict[str, Any]:
    return {
        "apiVersion": "toys.ironbell.dev/v1",
        "kind": "Toy",
        "metadata": {"name": name},
        "spec": {"size": size},
    }


def test_commands_know_it(source: Path) -> None:
    assert ("CustomResourceDefinition", DEFINITION) in documents(ironbell(source, "crds"))
    assert "  toy                    Toys: what tests play with." in ironbell(source, "run", "--help")


def test_an_installation_gives_it_accounts_rights_webhooks_and_a_lease(source: Path) -> None:
    found = documents(ironbell(source, "install", "--print", "--components", "toy"))
    assert ("CustomResourceDefinition", DEFINITION) in found
    rules = found["ClusterRole", "ironbell-toy"]["rules"]
    assert {"apiGroups": ["toys.ironbell.dev"], "resources": ["toys/status"], "verbs": ["patch"]} in rules
    assert {"apiGroups": ["toys.ironbell.dev"], "resources": ["toys"], "verbs": ["get", "list", "watch"]} in rules
    leases = found["Role", "ironbell-toy"]["rules"]
    assert any(rule.get("resourceNames") == ["ironbell-toy"] for rule in leases)
    for kind, prefix in (("MutatingWebhookConfiguration", "default"), ("ValidatingWebhookConfiguration", "validate")):
        (webhook,) = found[kind, "ironbell-toy"]["webhooks"]
        assert webhook["name"] == f"{prefix}.{DEFINITION}"
        assert webhook["clientConfig"]["service"]["name"] == "ironbell-toy"
    (container,) = found["Deployment", "ironbell-toy"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][:2] == ["run", "toy"]
    assert any(word.startswith("--webhook-address=") for word in container["args"])
    assert ("CustomResourceDefinition", DEFINITION) not in documents(ironbell(source, "install", "--print"))


def test_the_embedded_api_serves_it(source: Path, tmp_path: Path) -> None:
    with site(source, tmp_path / "data") as api:
        refused = api.post(TOYS, toy("small", -1))
        assert (refused.status, refused.reason) == (422, "Invalid")
        assert "spec.size: Invalid value: -1: must not be negative" in refused.message
        assert api.post(TOYS, toy("large", 7)).json["spec"] == {"size": 7, "color": "red"}
        eventually(lambda: (api.get(f"{TOYS}/large").json.get("status") or {}).get("size") == 7)


def test_it_can_be_left_out_and_run_by_a_process_of_its_own(source: Path, tmp_path: Path) -> None:
    port = free_port()
    manifests = documents(ironbell(source, "install", "--print", "--components", "toy"))
    with site(source, tmp_path / "data", "--without", "toy") as api:
        assert api.get(TOYS).status == 404
        definition = manifests["CustomResourceDefinition", DEFINITION]
        assert api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).status == 201
        assert api.post("/api/v1/namespaces", {"metadata": {"name": "ironbell-system"}}).status == 201
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            configuration = manifests[kind, "ironbell-toy"]
            for webhook in configuration["webhooks"]:
                path = webhook["clientConfig"].pop("service")["path"]
                webhook["clientConfig"]["url"] = f"https://localhost:{port}{path}"
            assert api.post(f"{WEBHOOKS}/{kind.lower()}s", configuration).status == 201
        words = ("--webhook-address", f"127.0.0.1:{port}", "--webhook-host", "localhost")
        with running(
            source, tmp_path / "toy.log", "run", "toy", *words, "--kubeconfig", str(tmp_path / "data/kubeconfig")
        ):
            eventually(lambda: api.post(TOYS, toy("large", 3)).status == 201, within_s=READY_S)
            assert api.get(f"{TOYS}/large").json["spec"] == {"size": 3, "color": "red"}
            refused = api.post(TOYS, toy("small", -1))
            assert (refused.status, refused.reason) == (422, "Invalid")
            assert "spec.size: Invalid value: -1: must not be negative" in refused.message
            eventually(lambda: (api.get(f"{TOYS}/large").json.get("status") or {}).get("size") == 3)
            lease = "/apis/coordination.k8s.io/v1/namespaces/ironbell-system/leases/ironbell-toy"
            assert api.get(lease).json["spec"]["holderIdentity"]


def test_the_reference_describes_it(source: Path) -> None:
    tree = source.parent
    for folder in ("tools", "docs"):
        shutil.copytree(ROOT / folder, tree / folder, dirs_exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, "tools/docs.py"], cwd=tree, env=environment, check=True, timeout=120)
    reference = tree / "docs/reference"
    assert "## Toy" in (reference / "kinds.md").read_text()
    assert "toy                    Toys: what tests play with." in (reference / "cli.md").read_text()
