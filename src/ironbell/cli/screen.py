"""The screen of `ironbell up`: addresses of services, the line with the kubeconfig, warnings, and the state.

It is drawn with plain text and three control sequences (home, clear, colour) in the terminal's normal mode: a process
that is killed leaves nothing to restore. It is drawn again only when something changed.

Source: ECMA-48 sections 8.3.21 (CUP), 8.3.39 (ED), 8.3.117 (SGR); https://no-color.org.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ironbell.base.printable import printable

if TYPE_CHECKING:
    from ironbell.app.site.options import UpOptions

HOME, CLEAR, PLAIN = "\x1b[H", "\x1b[J", "\x1b[0m"
BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"
_PLAIN_TERMINALS = {"", "dumb", "unknown"}
CORE, BOOT, WORKFLOW, LAB = "core", "boot", "workflow", "lab"
_CANNOT_START = "cannot start"


@dataclass(frozen=True)
class Line:
    """One line; `is_whole` if it must be shown completely, over several rows if necessary."""

    text: str = ""
    style: str = ""
    is_whole: bool = False
    rank: int = 0
    """Lines with a higher rank are left out first if there are too few rows."""

    def rows(self, width: int) -> int:
        """Number of terminal rows that the line takes."""
        return max(1, -(-len(self.text) // width)) if self.is_whole else 1

    def drawn(self, width: int, *, colour: bool) -> str:
        """The line with control sequences, cut to the width unless it is whole."""
        text = self.text if self.is_whole or len(self.text) <= width else self.text[: max(width - 1, 0)] + "…"
        return f"\x1b[{self.style}m{text}{PLAIN}" if self.style and colour else text


@dataclass
class SiteView:
    """The state of a site: its options, and the reports of its processes. Returns the lines to show. Pure."""

    options: UpOptions
    address: str
    """The address of this host for servers."""
    log: Path
    version: str
    warnings: list[str] = field(default_factory=list)
    log_problem: str = ""
    """The reason why the log cannot be kept within its limit."""
    states: dict[str, str] = field(default_factory=dict)
    """State of each requested process: what it waits for, or its failure; empty once it serves."""
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    machines: dict[str, str] = field(default_factory=dict)

    def record(self, name: str, report: Mapping[str, Any]) -> None:
        """Record a report of a process, or of `up` itself."""
        event = report["event"]
        facts = self.facts.setdefault(name, {})
        if event == "requested":
            self.states = dict.fromkeys(report["processes"], "is starting")
            self.warnings = list(report["warnings"])
        elif event == "machine":
            self.machines[report["machine"]] = report["power"]
        elif event in ("ready", "serving", "bound"):
            facts.update(report)
            if event == "ready" and name in self.states:
                self.states[name] = ""
        elif event == "failed" and name in self.states:
            self.states[name] = f"{_CANNOT_START}: {report.get('message', '')}"
        elif event == "ended" and name in self.states and not self.states[name].startswith(_CANNOT_START):
            # a process that reported why it cannot start ends at once, and would hide the cause
            self.states[name] = f"exited with status {report['status']} and is being restarted"

    def lines(self) -> list[Line]:
        """All lines, for a terminal of any height."""
        waits = [f"{name} {state}" for name, state in self.states.items() if state]
        state = Line(f"Waits for: {'; '.join(waits)}", YELLOW, is_whole=True) if waits else Line("Ready.", GREEN)
        warnings = [warning for warning in (*self.warnings, self.log_problem) if warning]
        services = list(self._services())
        width = max((len(name) for name, _ in services), default=0)
        return [
            Line(f"Ironbell {self.version}, data folder {self.options.folder}", BOLD, rank=1),
            state,
            *self._export(),
            Line(rank=4),
            *(Line(f"{name.ljust(width)}   {where}", rank=2) for name, where in services),
            Line(rank=4),
            *(Line(f"Warning: {warning}", RED, is_whole=True, rank=1) for warning in warnings),
            Line(f"Log: {self.log} (use `--log` to show it here)", is_whole=True, rank=3),
            Line("Ctrl-C stops Ironbell. Objects and servers stay unchanged.", rank=3),
        ]

    def _export(self) -> Iterator[Line]:
        kubeconfig = self.facts.get(CORE, {}).get("kubeconfig")
        if kubeconfig:
            yield Line(f"export KUBECONFIG={shlex.quote(str(kubeconfig))}", BOLD, is_whole=True)

    def _services(self) -> Iterator[tuple[str, str]]:
        """Names and addresses of the services that are bound."""
        core, boot, workflow, lab = (self.facts.get(name, {}) for name in (CORE, BOOT, WORKFLOW, LAB))
        address = self.address or "all addresses"
        if "port" in core:
            yield "Kubernetes API", f"https://{self.options.api_address}:{core['port']}"
        if "http" in boot:
            yield "HTTP boot", f"http://{address}:{boot['http']}"
            yield "Metadata", f"http://{address}:{boot.get('metadata', boot['http'])}"
        if "tftp" in boot:
            yield "TFTP", f"{address}, UDP port {boot['tftp']}"
        if "dhcp" in boot:
            yield "DHCP", f"{self.options.interface or lab.get('bridge', address)}, {self.options.dhcp}"
        if "grpc" in workflow:
            yield "Workflows", f"{address}:{workflow['grpc']} (gRPC)"
        ports = [port for port in (boot.get("http"), workflow.get("workflow_http")) if port is not None]
        if ports:
            yield "Metrics", ", ".join(f"http://{address}:{port}/metrics" for port in ports)
        if self.options.simulated_servers:
            yield "Simulation", f"servers: {self.options.simulated_servers}"
        if self.machines:
            on = sum(power.lower() == "on" for power in self.machines.values())
            yield "Lab", f"virtual machines: {len(self.machines)}, powered on: {on}"


def fitted(lines: list[Line], *, width: int, height: int) -> list[Line]:
    """The lines that fit into a terminal; the cursor needs a separate row."""
    shown = list(lines)
    while sum(line.rows(width) for line in shown) > max(height - 1, 1) and len(shown) > 1:
        rank = max(line.rank for line in shown)
        last = max(number for number, line in enumerate(shown) if line.rank == rank)
        del shown[last]
    return shown


@dataclass
class Screen:
    """Draws a site on a terminal.

    The terminal is opened again, without blocking: a reader who has stopped the output must not stop the site.
    """

    view: SiteView
    terminal: int
    colour: bool
    _drawn: str = ""
    _has_begun: bool = False

    def record(self, name: str, report: Mapping[str, Any]) -> None:
        """Record a report and show it."""
        self.view.record(name, report)
        self.draw()

    def draw(self, *, force: bool = False) -> None:
        """Draw the lines if they changed; `force` after the terminal's size changed."""
        try:
            width, height = os.get_terminal_size(self.terminal)
        except OSError:
            return  # the terminal was closed, and a signal will end this process
        width, height = width or 80, height or 24
        lines = fitted([_clean(line) for line in self.view.lines()], width=width, height=height)
        picture = "".join(f"{line.drawn(width, colour=self.colour)}\r\n" for line in lines)
        if picture == self._drawn and not force:
            return
        # what the terminal shows of earlier commands is moved into its history
        lead = "" if self._has_begun else "\r\n" * height
        whole = f"{lead}{HOME}{CLEAR}{picture}".encode()
        with contextlib.suppress(OSError):  # the terminal takes no output now; the next call tries again
            self._drawn, self._has_begun = "", True
            if os.write(self.terminal, whole) == len(whole):
                self._drawn = picture


def _clean(line: Line) -> Line:
    return Line(printable(line.text).replace("\n", " "), line.style, line.is_whole, line.rank)


def open_terminal() -> int | None:
    """The terminal that is both standard output and standard error, opened for drawing; None if the log is to be
    shown."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()) or os.environ.get("TERM", "") in _PLAIN_TERMINALS:
        return None
    try:
        return os.open(os.ttyname(sys.stdout.fileno()), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None


def uses_colour() -> bool:
    """Return whether the screen uses colours."""
    return not os.environ.get("NO_COLOR")
