"""Every command with inputs of every wrong kind: an error is one line with a status, and never a defect."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click
import pytest

from ironbell.cli import main as entry
from ironbell.cli.session import _Seconds
from ironbell.image.debian import BuildError
from support.site.commands import all_commands

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: a, cluster: {{server: "{server}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: c, context: {{cluster: a, user: u}}}}]
current-context: c
"""
TEMPLATE = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "${CLUSTER_NAME}"}\n'
BASE = {
    "cluster create": "a --from template.yaml",
    "cluster delete": "a --yes",
    "cluster describe": "a",
    "cluster kubeconfig": "a",
    "cluster list": "",
    "cluster scale": "a --workers 1",
    "cluster upgrade": "a --kubernetes-version v1.34.2",
    "backup": "backup.tar --data-dir site",
    "restore": "backup.tar --data-dir site",
    "completion": "bash",
    "crds": "",
    "demo": "",
    "get": "hardware",
    "hardware confirm": "a",
    "hardware hold": "--restored-from 2026-11-22T09:00:00Z",
    "image archive": "",
    "image build": "",
    "install": "",
    "ipxe build": "",
    "lab console": "a --data-dir site",
    "lab fault": "a slow --data-dir site",
    "lab init": "lab.yaml",
    "lab list": "--data-dir site",
    "lab manifests": "--data-dir site",
    "lab power": "a on --data-dir site",
    "logs": "a",
    "osie build": "",
    "pivot": "--to kubeconfig",
    "pool confirm": "a",
    "run": "rufio --no-leader-elect",
    "storage check": "--data-dir site",
    "storage rotate-key": "--data-dir site",
    "template render": "template.yaml",
    "uninstall": "--yes",
    "up": "--data-dir site",
    "version": "",
    "why": "hardware/a",
}
# (reading the memory of a process at its beginning fails, for root too)
UNREADABLE = "/proc/self/mem"
PATHS = (
    UNREADABLE,
    "nowhere",
    "nowhere/below",
    "folder",
    "binary",
    "empty",
    "malformed.yaml",
    "list.yaml",
    "file/below",
)
NO_API = ("crds", "up", "run")
FORBIDDEN = b'{"kind":"Status","message":"it is forbidden: User \\"u\\" cannot do it","reason":"Forbidden","code":403}'


class Refusing(BaseHTTPRequestHandler):
    """An API that lets nobody do anything."""

    def _refuse(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self.rfile.read(length)
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(FORBIDDEN)))
        self.end_headers()
        self.wfile.write(FORBIDDEN)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _refuse  # noqa: N815 - names of http.server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Nobody reads it."""


@pytest.fixture(scope="module")
def refusing() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with files of every kind but the right one; nothing is built or started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "binary").write_bytes(b"\x7fELF\x02\x01\xff\xfe\0")
    (tmp_path / "malformed.yaml").write_text("a: [b\n c: {")
    (tmp_path / "list.yaml").write_text("[1, 2]")
    for name in ("empty", "file"):
        (tmp_path / name).touch()
    for name in ("folder", "site"):
        (tmp_path / name).mkdir()
    (tmp_path / "kubeconfig").write_text(KUBECONFIG.format(server="http://127.0.0.1:9"))
    (tmp_path / "template.yaml").write_text(TEMPLATE)

    def unprivileged() -> None:
        raise BuildError("building needs root; run it with sudo")

    async def no_site(*_: object) -> None:
        pass

    for module in ("osie.build", "image.build", "image.archive"):
        monkeypatch.setattr(f"ironbell.{module}.require_root", unprivileged)
    monkeypatch.setattr("ironbell.ipxe.build._check_tools", unprivileged)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("ironbell.app.site.up.run_site", no_site)
    monkeypatch.setattr("ironbell.app.run.components.run_components", lambda *_: 0)
    monkeypatch.setattr("ironbell.app.run.wire.prepare_wire", lambda *_, **__: None)
    monkeypatch.setattr("ironbell.app.processes.logs.configure_logging", lambda **_: None)
    return tmp_path


def ended(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]) -> tuple[int, str]:
    """Exit status and standard error of a command, without a terminal."""
    monkeypatch.setattr(sys, "argv", ["ironbell", *words])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    try:
        entry.main()
        status = 0
    except SystemExit as left:
        status = int(left.code or 0)
    return status, capsys.readouterr().err


def fault(status: int, said: str) -> str:
    """What is wrong with how a command ended; empty if nothing is."""
    lines = [line for line in said.splitlines() if line.startswith("ironbell: ")]
    if any(text in said for text in ("Traceback", "[Errno", "codec", "internal error", "<class", "Error(")):
        return said
    if status == 0:
        return ""
    if len(lines) != 1 or said.splitlines()[-1] != lines[0]:
        return f"not one line: {said!r}"
    return "" if len(lines[0].split()) > 4 else f"no remedy: {said!r}"


def variations(name: str, command: click.Command) -> Iterator[list[str]]:
    """The command with one wrong value each."""
    base = [*name.split(), *BASE[name].split()]
    for parameter in command.params:
        values: tuple[str, ...] = ()
        if isinstance(parameter.type, click.Path):
            values = PATHS
        elif isinstance(parameter.type, click.Choice | click.types.IntParamType | _Seconds):
            values = ("nonsense", "-1", "")
        elif parameter.name in ("source", "output", "template_file", "image"):
            values = PATHS
        if isinstance(parameter, click.Option):
            if not parameter.is_flag:
                yield from ([*base, parameter.opts[0], value] for value in values)
        elif values and parameter.type.name != "text":
            yield from ([*name.split(), value, *base[len(name.split()) + 1 :]] for value in values)


def test_every_command_is_tried() -> None:
    assert all_commands().keys() == BASE.keys()


@pytest.mark.parametrize("name", sorted(BASE))
def test_a_wrong_value_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    faults = {}
    for words in [*variations(name, all_commands()[name]), [*name.split(), "--no-such-option"]]:
        if found := fault(*ended(capsys, monkeypatch, words)):
            faults[" ".join(words)] = found
    assert faults == {}


@pytest.mark.parametrize("name", sorted(BASE))
def test_an_api_that_refuses_or_is_away_is_one_line(
    folder: Path, refusing: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name in NO_API or "kubeconfig" not in [parameter.name for parameter in all_commands()[name].params]:
        return
    words = [*name.split(), *BASE[name].split()]
    status, said = ended(capsys, monkeypatch, [*words, "--kubeconfig", "kubeconfig"])
    assert (status, fault(status, said)) == (1, "")
    assert "127.0.0.1:9" in said
    (folder / "kubeconfig").write_text(KUBECONFIG.format(server=refusing))
    status, said = ended(capsys, monkeypatch, [*words, "--kubeconfig", "kubeconfig"])
    assert (status, fault(status, said)) == (1, "")
    assert "forbidden" in said
    assert "have the right granted" in said


@pytest.mark.parametrize("words", ["version -o json", "completion bash", "crds tinkerbell.org"])
def test_a_closed_standard_output_is_no_defect(words: str) -> None:
    command = f"exec {sys.executable} -m ironbell.cli.main {words} >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert fault(done.returncode, done.stderr) == ""
