"""A clock that is set while we run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ironbell.base.clock import SteadyClock


class Machine:
    def __init__(self) -> None:
        self.elapsed, self.offset = 100.0, 1_800_000_000.0
        self.clock = SteadyClock(lambda: self.elapsed + self.offset, lambda: self.elapsed)

    def now(self) -> float:
        return self.clock.now().timestamp()


def test_a_step_is_not_time_that_passed() -> None:
    for step in (3600.0, -3600.0):
        machine = Machine()
        before = machine.now()
        machine.offset += step
        machine.elapsed += 10
        assert 9 - 1e-3 <= machine.now() - before <= 11 + 1e-3


def test_it_meets_the_system_s_clock_again() -> None:
    machine = Machine()
    machine.offset += 60
    for _ in range(700):
        machine.elapsed += 1
        machine.now()
    assert abs(machine.now() - (machine.elapsed + machine.offset)) < 1e-3


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(-1e6, 1e6)), max_size=20))
def test_it_never_goes_back(moves: list[tuple[float, float]]) -> None:
    machine = Machine()
    last = machine.now()
    for passed, step in moves:
        machine.elapsed += passed
        machine.offset += step
        assert machine.now() >= last
        last = machine.now()
