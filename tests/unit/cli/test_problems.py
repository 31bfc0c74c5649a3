"""What users meet when they give something wrong: one line with what to do, a status, and no traceback."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ironbell.cli import main as entry

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:9"}}]
users: [{name: u, user: {}}]
contexts: [{name: c, context: {cluster: a, user: u}}]
current-context: c
"""
TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: "${CLUSTER_NAME}"}
data: {cidr: "${POD_CIDR}"}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with files of every kind but the right one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "binary").write_bytes(b"\x7fELF\x02\x01\xff\xfe\0")
    (tmp_path / "nul").write_bytes(b"kind: A\0\n")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    (tmp_path / "without-context").write_text(KUBECONFIG.replace("current-context: c", ""))
    (tmp_path / "list").write_text("[1]")
    (tmp_path / "misspelt").write_text("interfase: eno2\n")
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    return tmp_path


def failed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str) -> tuple[int, str]:
    """Exit status and standard error of a command, without a terminal."""
    monkeypatch.setattr(sys, "argv", ["ironbell", *words.split()])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit) as left:
        entry.main()
    said = capsys.readouterr().err
    return int(left.value.code or 0), said


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        ("cluster create a --dry-run --from binary", 1, "binary is a binary file; give a cluster template, which is"),
        ("cluster create a --dry-run --from nul", 1, "nul is a binary file; give a cluster template, which is YAML"),
        ("cluster create a --dry-run --from folder", 1, "folder is a folder; give the file that holds a cluster templ"),
        ("cluster create a --dry-run --from nowhere", 1, "there is no file nowhere; give the file that holds a clust"),
        ("cluster create a --dry-run --from empty", 1, "empty: contains no objects"),
        ("cluster create a --dry-run --from -", 1, "-: contains no objects"),
        (
            "cluster create a --dry-run --from template.yaml --set POD_CIDRS=1",
            1,
            '--set: template.yaml has no variable "POD_CIDRS". Did you mean "POD_CIDR"? --list-variables',
        ),
        ("template render binary", 1, "binary is a binary file; give a manifest, which is YAML"),
        ("template render folder", 1, "folder is a folder; give the file that holds a manifest"),
        ("template render nowhere", 1, "there is no file nowhere; give the file that holds a manifest"),
        (
            "get hardware",
            1,
            "No kubeconfig was found. Set --kubeconfig DIR/kubeconfig, the path that `ironbell up` prints.",
        ),
        ("get hardware --kubeconfig binary", 1, "binary is not a kubeconfig: it is a binary file"),
        ("get hardware --kubeconfig empty", 1, "empty is not a kubeconfig"),
        ("get hardware --kubeconfig nowhere", 1, "nowhere cannot be read: no such file or directory"),
        ("get hardware --kubeconfig folder", 2, "is a directory. `ironbell get --help` shows the options."),
        (
            "get jobs --kubeconfig kubeconfig --context x",
            1,
            'kubeconfig: there is no context "x"; choose one of these with --',
        ),
        (
            "get hardware --kubeconfig kubeconfig",
            1,
            "127.0.0.1:9: connection refused. Check that the API server runs, and that the kubeconfig belongs to it.",
        ),
        (
            "uninstall --kubeconfig kubeconfig",
            1,
            "This command needs a confirmation, and standard input is not a terminal. C",
        ),
        ("cluster scale a --workers x", 2, "'x' is not a valid integer. `ironbell cluster scale --help` shows the op"),
        ("cluster scale a --workers 1 --timeout soon", 2, "'soon' is not a duration: write it as 15s, 500ms or 1h30m."),
        ("run wire --kubeconfig kubeconfig --http-port 99999", 2, "99999 is not in the range 0<=x<=65535."),
        ("lab init nowhere/lab.yaml", 1, "nowhere/lab.yaml: no such file or directory. Check the path."),
        ("up --data-dir empty", 2, "'empty' is a file. `ironbell up --help` shows the options."),
        (
            "get jobs --kubeconfig without-context",
            1,
            "no current context is set; choose one of these with --con",
        ),
        (
            "up --config binary --data-dir folder",
            1,
            "--config: binary is a binary file; give a configuration, which",
        ),
        (
            "up --config nowhere --data-dir folder",
            1,
            "--config: there is no file nowhere; give the file that holds a con",
        ),
        (
            "up --config misspelt --data-dir folder",
            1,
            'misspelt: "interfase" is not an option. Did you mean "interface"?',
        ),
        ("up --config list --data-dir folder", 1, "--config: list is not a mapping of option names to values"),
        ("osie build --output binary", 1, "--output: binary is a file, not a folder; choose another path"),
        ("osie build --output binary/below", 1, "/binary is a file, not a folder; choose another path"),
        (
            "image build --output binary",
            1,
            "binary exists, and has no manifest beside it that records a build",
        ),
        ("image archive --output binary/x", 1, "binary is a file, not a folder; choose another path"),
        ("osie build --output o --ca binary", 1, "--ca: binary holds no PEM certificate; give a PEM file of certif"),
        ("osie build --output o --ca nowhere", 1, "--ca: nowhere cannot be read: no such file or directory; give a "),
        ("osie build --suite bookworm --sources binary", 1, "--sources: binary is a binary file; give a file of apt"),
        ("image build --suite bookworm --sources nowhere", 1, "--sources: nowhere cannot be read: no such file or di"),
        ("restore nowhere --data-dir d", 1, "nowhere cannot be read: no such file or directory; use a file that `"),
        ("storage check --data-dir folder", 1, "there is no database folder/api.db: name the data folder of a site"),
    ],
)
def test_bad_input_is_one_line_with_what_to_do(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    status: int,
    expected: str,
) -> None:
    code, said = failed(capsys, monkeypatch, words)
    line = said.splitlines()[-1]
    assert (code, line[:10]) == (status, "ironbell: ")
    assert expected in line
    assert len([text for text in said.splitlines() if text.startswith("ironbell: ")]) == 1
    assert not any(text in said for text in ("Traceback", "[Errno", "codec", "defect"))


@pytest.mark.parametrize("traced", [False, True])
def test_a_defect_says_that_it_is_one(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, traced: bool
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("a\nb")

    monkeypatch.setattr(click.Group, "main", broken)
    if traced:
        monkeypatch.setenv("IRONBELL_TRACEBACK", "1")
    code, said = failed(capsys, monkeypatch, "get hardware")
    assert code == 1
    assert ("Traceback" in said) is traced
    assert said.splitlines()[-1].startswith("ironbell: internal error, ValueError: a b. This is a defect of Ironbell:")


def test_a_reader_that_leaves_ends_the_command_without_a_word() -> None:
    words = [sys.executable, "-m", "ironbell.cli.main", "crds"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) in {1, 141}  # click itself leaves with 1 where it meets the closed pipe first
    process.stderr.close()


@pytest.mark.parametrize("place", ["main", "invoke"])
def test_an_interrupt_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Group, place, interrupted)
    status, said = failed(capsys, monkeypatch, "get hardware")
    assert (status, said.strip()) == (130, "ironbell: interrupted")
