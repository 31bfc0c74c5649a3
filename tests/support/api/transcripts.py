"""What kubectl says, step by step: the same commands given to two servers, and their answers made comparable.

A scenario is a text file. Each line is a command for a shell, run in a folder of its own with the scenario's manifests
and with `kubectl` bound to a namespace of the scenario's own. A line that starts with `!` must fail. Where `?` stands,
what is printed differs by design, for the reason in the comment above, and only success is compared. `# ` starts a
comment, and `>>> NAME` ... `<<<` holds a manifest.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
from dataclasses import dataclass
from pathlib import Path

import yaml

STEP_TIMEOUT_S = 60

_SUBSTITUTIONS = tuple(
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        (r"https://(127\.0\.0\.1|localhost):\d+", "https://SERVER"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UID"),
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4})?", "TIME"),
        (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
        (r"(resourceVersion\"?: ?\"?)\d+", r"\1VERSION"),
        (r"(Resource Version: +)\d+", r"\1VERSION"),
        (r"(^|(?<=\s))\d+(d\d+h|h\d+m|m\d+s|[smhd])(?=\s|$)", "AGE"),
        (r"<invalid>", "AGE"),
        (r"/\w+/(LIVE|MERGED)-\d+", r"\1"),
        (r"^([IWE])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", r"\1 "),
        # The embedded API says so where it stores what only a whole cluster would run.
        (r"^Warning: this API (?:runs|signs) no .*\n", ""),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
        (r"(?<=\S) {2,}(?=\S)", "  "),
        (r"[ \t]+$", ""),
    )
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Commands, and the files that they name."""

    name: str
    steps: tuple[str, ...]
    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Said:
    """What a step came to: nothing in it tells one run from the next."""

    step: str
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """As lines, to be compared."""
        if "?" in self.step[:2]:
            return f"$ {self.step}\n= {self.code}\n"
        return f"$ {self.step}\n{self.out}{self.err}= {self.code}\n"


def read_scenario(path: Path) -> Scenario:
    """The scenario in a file."""
    steps: list[str] = []
    files: list[tuple[str, str]] = []
    lines = iter(path.read_text().splitlines())
    for line in lines:
        if line.startswith(">>> "):
            content = "".join(f"{part}\n" for part in iter(lambda: next(lines), "<<<"))
            files.append((line.removeprefix(">>> "), content))
        elif line.strip() and not line.startswith("#"):
            steps.append(line)
    return Scenario(path.stem, tuple(steps), tuple(files))


async def play(scenario: Scenario, *, kubectl: Path, kubeconfig: Path, folder: Path) -> list[Said]:
    """Run all steps against the server of a kubeconfig, in an empty folder.

    The namespace of the scenario is made before, and deleted without waiting after.
    """
    namespace = f"kubectl-{scenario.name}"
    environment = _prepare(scenario, kubectl=kubectl, kubeconfig=kubeconfig, folder=folder, namespace=namespace)
    await _run(f"kubectl create namespace {namespace}", folder, environment)
    try:
        return [await _run(step, folder, environment) for step in scenario.steps]
    finally:
        await _run(f"kubectl delete namespace {namespace} --wait=false", folder, environment)


def expected(said: Said) -> bool:
    """Whether a step succeeded or failed as its scenario says."""
    return (said.code != 0) == said.step.startswith("!")


def normalised(text: str) -> str:
    """A text without addresses, versions, identities and times."""
    for pattern, replacement in _SUBSTITUTIONS:
        text = pattern.sub(replacement, text)
    return text


def _prepare(scenario: Scenario, *, kubectl: Path, kubeconfig: Path, folder: Path, namespace: str) -> dict[str, str]:
    for name, content in scenario.files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    programs, home = folder / ".bin", folder / ".home"
    programs.mkdir()
    home.mkdir()
    (programs / "kubectl").symlink_to(kubectl)
    config = yaml.safe_load(kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    own = home / "config"
    own.touch(mode=0o600)
    own.write_text(yaml.safe_dump(config))
    return {
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "KUBECONFIG": str(own),
        "KUBECACHEDIR": str(home / "cache"),
        "TZ": "UTC",
    }


async def _run(step: str, folder: Path, environment: dict[str, str]) -> Said:
    process = await asyncio.create_subprocess_exec(
        "bash", "-o", "pipefail", "-c", step.lstrip("!? "), cwd=folder, env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(STEP_TIMEOUT_S):
            out, err = await process.communicate()
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise TimeoutError(f"not done within {STEP_TIMEOUT_S} s: {shlex.quote(step)}") from None
    assert process.returncode is not None
    return Said(step, process.returncode, normalised(out.decode()), normalised(err.decode()))
