"""Which tests a run of several processes runs in one of them, one after the other, and which ones it runs alone.

What is shared by two pytest processes on one machine is either disjoint (folders, ports, namespaces, addresses: each
has its own) or belongs to a group here. Any other module is run by the process that is free first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling
    from xdist.workermanage import WorkerController


@dataclass(frozen=True)
class Group:
    """Modules that are never run beside each other."""

    name: str
    reason: str
    paths: tuple[str, ...]
    """Modules, and folders, which end with a slash."""
    saves_time: bool = False
    """Whether its modules could run beside each other, and only share what takes long to start. In soak they do run
    beside each other: its tests take much longer than what they share."""


ALONE: Final = "alone"
GROUPS: Final = (
    Group(
        "labs",
        "A lab removes what labs left whose processes have ended, and some of these tests kill theirs. QEMU emulates "
        "processors, and kubelets start whole control planes: two at a time would take both cores from all others.",
        (
            "tests/e2e/",
            "tests/chaos/test_bmc_faults.py",
            "tests/integration/lab/test_lab_process.py",
            "tests/integration/lab/test_namespace_machine.py",
        ),
    ),
    Group(
        "clusters",
        "One real control plane serves all of them: another one would cost its start, and a tenth of a core until the "
        "end of the run.",
        (
            "tests/conformance/",
            "tests/clients/",
            "tests/integration/cluster/test_address_pools.py",
            "tests/integration/cluster/test_cluster_api.py",
            "tests/integration/cluster/test_install.py",
            "tests/integration/cluster/test_installation.py",
            "tests/integration/cluster/test_pivot.py",
            "tests/integration/cluster/test_webhooks.py",
            "tests/integration/lives/test_class.py",
            "tests/integration/lives/test_machines_by_hand.py",
            "tests/integration/lives/test_versions.py",
            "tests/integration/lives/test_without_class.py",
        ),
        saves_time=True,
    ),
    Group(
        ALONE,
        "They measure what must happen within a second or a few, most of them while somebody misbehaves. They are run "
        "at the end, when the other process has ended.",
        (
            "tests/chaos/test_logs.py",
            "tests/integration/agent/test_grpc_floods.py",
            "tests/integration/app/test_heavy_templates.py",
            "tests/integration/cluster/test_replicas.py",
            "tests/integration/faults/test_floods.py",
            "tests/integration/kubectl/test_site_access.py",
        ),
    ),
)
_WALKS: Final = "tests/integration/lives/test_walks.py::test_a_walk_ends_as_asked"
SPREAD: Final[Mapping[str, int]] = {f"{_WALKS}[embedded-": 1, f"{_WALKS}[real-": 2}
"""Beginnings of the names of tests that would take hours in the process of their module, and the number of groups that
they are spread over, by the number at their end. More sites at a time only take the processors from each other, and
from QEMU."""
_NUMBER: Final = re.compile(r"(\d+)\]$")


def group_of(nodeid: str, *, is_soak: bool = False) -> str:
    """The name of a test's group; in no group, that of its module, or of the test itself where it is spread."""
    path = nodeid.partition("::")[0]
    for beginning, groups in SPREAD.items():
        if nodeid.startswith(beginning) and (number := _NUMBER.search(nodeid)) is not None:
            return f"{beginning}{int(number[1]) % groups}"
    for group in GROUPS:
        if is_soak and group.saves_time:
            continue
        if any(path == one or (one.endswith("/") and path.startswith(one)) for one in group.paths):
            return group.name
    return path


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where processes share a run, what is run alone comes last."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: group_of(item.nodeid) == ALONE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """What gives each process its next group of tests, in the order of the command line."""
    from xdist.scheduler import LoadScopeScheduling

    is_soak = config.option.markexpr == "soak"

    class Lanes(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid, is_soak=is_soak)

        def _assign_work_unit(self, node: WorkerController) -> None:
            others = [other for other in self.nodes if other is not node]
            if next(iter(self.workqueue)) != ALONE or not others:
                super()._assign_work_unit(node)
            elif not all(other.shutting_down for other in others):
                node.shutdown()

        def remove_node(self, node: WorkerController) -> str | None:
            crashed = super().remove_node(node)
            for other in self.nodes:  # what is run alone may have waited for this process to end
                if other in self.registered_collections:
                    self._reschedule(other)
            return crashed

    config.option.loadscopereorder = False
    return Lanes(config, log)
