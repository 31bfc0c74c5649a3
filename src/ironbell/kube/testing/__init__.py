"""The test kit of controllers: a world in memory, and the crash test.

`World` holds objects, facts and a model of what is outside Kubernetes, so that `observe`, `decide` and `act` run in a
table test without mocks and without an event loop. `crash_check` proves that a controller may be killed anywhere.
`running` runs controllers under the real runtime, over `MemoryApi` or any other API.
"""

from ironbell.kube.testing.crash import CrashError, crash_check
from ironbell.kube.testing.memory import MemoryApi
from ironbell.kube.testing.running import running
from ironbell.kube.testing.world import NotSettledError, Step, World

__all__ = ["CrashError", "MemoryApi", "NotSettledError", "Step", "World", "crash_check", "running"]
