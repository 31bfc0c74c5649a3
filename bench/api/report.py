"""What was measured, and the comparison that is printed at the end."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field


@dataclass
class Figures:
    """What was measured of one server; lists have one element per round."""

    start_s: list[float] = field(default_factory=list)
    restart_s: list[float] = field(default_factory=list)
    empty_mib: dict[str, float] = field(default_factory=dict)
    full_mib: dict[str, float] = field(default_factory=dict)
    creates: dict[int, list[float]] = field(default_factory=dict)
    creates_ms: dict[int, list[float]] = field(default_factory=dict)
    create_cpu_us: dict[int, list[float]] = field(default_factory=dict)
    list_ms: dict[str, list[float]] = field(default_factory=dict)
    event_cpu_us: list[float] = field(default_factory=list)
    fan_out_ms: list[float] = field(default_factory=list)
    from_answer_ms: list[float] = field(default_factory=list)


def percentiles(values: list[float]) -> tuple[float, float]:
    """The 50th and the 99th."""
    cuts = statistics.quantiles(values, n=100)
    return cuts[49], cuts[98]


@dataclass(frozen=True)
class Row:
    """A line of the comparison; `goal` bounds the ratio of ours to theirs, or ours itself when `absolute`."""

    name: str
    ours: float
    real: float
    unit: str
    goal: float
    at_least: bool = False
    absolute: bool = False

    def text(self) -> str:
        ratio = self.ours / self.real if self.real else 0.0
        judged = self.ours if self.absolute else ratio
        met = judged >= self.goal if self.at_least else judged <= self.goal
        word = "at least" if self.at_least else "at most"
        goal = f"{word} {self.goal:g}{' ' + self.unit if self.absolute else ' x'}"
        numbers = f"{self.ours:10.4g} {self.real:10.4g} {self.unit:4} {ratio:6.2f} x"
        return f"{self.name:44} {numbers}   {goal:18} {'met' if met else 'NOT MET'}"


def rows(ours: Figures, real: Figures, *, objects: int, watchers: int) -> list[Row]:
    """Medians against medians."""
    found = [
        _row(f"durable creates, {clients} clients", rates, real.creates[clients], "/s", 1 if clients == 1 else 2,
             at_least=True)
        for clients, rates in ours.creates.items()
    ]  # fmt: skip
    found += [
        _row(f"list of {objects}, {name}", times, real.list_ms[name], "ms", 1 / 3)
        for name, times in ours.list_ms.items()
    ]
    for name, mine, theirs in (
        ("from before the write", ours.fan_out_ms, real.fan_out_ms),
        ("from its answer", ours.from_answer_ms, real.from_answer_ms),
    ):
        if mine:
            what = f"event to {watchers} watchers, p99 {name}"
            found.append(Row(what, percentiles(mine)[1], percentiles(theirs)[1], "ms", 150, absolute=True))
    if ours.start_s:
        found.append(_row("start in an empty folder", ours.start_s, real.start_s, "s", 1, absolute=True))
    for name, used, by_real in (("empty", ours.empty_mib, real.empty_mib), ("full", ours.full_mib, real.full_mib)):
        if used:
            alone, both = by_real["kube-apiserver"], sum(by_real.values())
            found.append(Row(f"resident, {name}, against kube-apiserver", sum(used.values()), alone, "MiB", 0.25))
            found.append(Row(f"resident, {name}, against it and etcd", sum(used.values()), both, "MiB", 0.25))
    return found


def _row(name: str, ours: list[float], real: list[float], unit: str, goal: float, **more: bool) -> Row:
    return Row(name, statistics.median(ours), statistics.median(real), unit, goal, **more)
