"""The `ironbell` command itself: its version, what it makes of words it does not know, options on either side."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ironbell.cli.main import cli
from ironbell.cli.options import api_options
from ironbell.cli.version import ironbell_version

PYTHON = Path(sys.executable)


def outcome(*words: str) -> tuple[int, str]:
    """Exit status and what is printed."""
    done = CliRunner(env={"KUBECONFIG": "", "HOME": "/nonexistent"}).invoke(cli, words, prog_name="ironbell")
    said = str(done.exception) if done.exception is not None and done.exit_code == 1 else done.output
    return done.exit_code, said


def test_version_is_an_option_too() -> None:
    assert outcome("--version") == outcome("version")
    assert outcome("--version")[1].startswith(f"ironbell {ironbell_version()} (Python ")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["clster", "list"], "cluster"),
        (["wy", "hardware/a"], "why"),
        (["cluster", "creat", "one"], "create"),
        (["cluster", "create", "one", "--worker-count", "1"], "--workers"),
        (["up", "--simulat", "12"], "--simulate"),
        (["--kubeconf", "a", "get", "hardware"], "--kubeconfig"),
    ],
)
def test_a_word_that_is_nearly_one_is_suggested(words: list[str], meant: str) -> None:
    status, said = outcome(*words)
    assert status == 2
    assert "Did you mean" in said
    assert repr(meant) in said


def test_a_word_like_no_other_is_only_rejected() -> None:
    status, said = outcome("xyzzy")
    assert status == 2
    assert "No such command 'xyzzy'." in said
    assert "Did you mean" not in said


@pytest.mark.parametrize(
    "words",
    [
        ["get", "hardware", "--kubeconfig", "{file}", "--context", "x"],
        ["--kubeconfig", "{file}", "--context", "x", "get", "hardware"],
        ["--context", "x", "get", "--kubeconfig", "{file}", "hardware"],
        ["--context", "y", "get", "hardware", "--kubeconfig", "{file}", "--context", "x"],
        ["cluster", "--kubeconfig", "{file}", "--context", "x", "describe", "a"],
        ["--kubeconfig", "{file}", "cluster", "--context", "x", "describe", "a"],
        ["--kubeconfig", "{file}", "--context", "x", "hardware", "confirm", "a"],
    ],
)
def test_the_api_is_named_before_or_after_the_subcommand(tmp_path: Path, words: list[str]) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("apiVersion: v1\nkind: Config\nclusters: []\nusers: []\ncontexts: []\n")
    status, said = outcome(*(word.format(file=file) for word in words))
    assert status == 1
    assert f'{file}: there is no context "x", and no other one; give a ' in said


def test_naming_an_api_to_a_command_that_has_none_is_a_mistake() -> None:
    status, said = outcome("--context", "x", "up", "--simulate", "12")
    assert status == 2
    assert "`ironbell up` does not use an API, so --context has no effect." in said


def test_every_group_with_a_command_that_talks_to_an_api_takes_its_options() -> None:
    root = click.Context(cli, info_name="ironbell")
    names = {option.name for option in api_options(click.Command("x")).params}
    for name in cli.list_commands(root):
        group = cli.get_command(root, name)
        if isinstance(group, click.Group):
            of_commands = {p.name for command in group.commands.values() for p in command.params} & names
            assert of_commands <= {p.name for p in group.params}, name


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ironbell", "clu"], ["cluster"]),
        (["ironbell", "cluster", "des"], ["describe"]),
        (["ironbell", "get", "--kube"], ["--kubeconfig"]),
        (["ironbell", "--vers"], ["--version"]),
    ],
)
def test_the_script_for_bash_completes(tmp_path: Path, words: list[str], expected: list[str]) -> None:
    """As bash does it on the Tab key: the function that the script registers is called with COMP_WORDS."""
    (tmp_path / "ironbell").write_text(f'#!/bin/sh\nexec "{PYTHON}" -m ironbell "$@"\n')
    (tmp_path / "ironbell").chmod(0o755)
    text = " ".join(f"'{word}'" for word in words)
    script = f"""
        source <(ironbell completion bash)
        registered=$(complete -p ironbell)
        function=${{registered##*-F }}
        COMP_WORDS=({text}) COMP_CWORD={len(words) - 1}
        ${{function% ironbell}} ironbell
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "--norc", "-c", script],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_scripts_that_ask_the_program(shell: str) -> None:
    status, script = outcome("completion", shell)
    assert status == 0
    assert f"_IRONBELL_COMPLETE={shell}_complete" in script


def test_each_command_is_completed_without_an_import_of_all() -> None:
    loaded = (
        "import sys; from ironbell.cli.main import cli; import click; "
        "items = cli.shell_complete(click.Context(cli), ''); "
        "assert 'cluster' in [item.value for item in items]; "
        "sys.exit('ironbell.cli.objects.cluster' in sys.modules)"
    )
    assert subprocess.run([PYTHON, "-c", loaded], check=False).returncode == 0
