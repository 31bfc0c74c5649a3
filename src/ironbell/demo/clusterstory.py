"""The story of a cluster's servers: each change once and in order, with the server's kind. Pure but for its memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from ironbell.api.bmc.machine import Machine
from ironbell.api.core import Event, Node
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.api.unstructured import Unstructured
from ironbell.contract.servers.claim import WIPED, claim_of
from ironbell.demo.story import Line, Story

READY_LABEL = "node ready"
WIPED_LABEL, FREE_LABEL = "wiped", "free"


@dataclass
class ClusterStory:
    """Remembers what was shown. `kinds` has the kind of each server, by name."""

    kinds: Mapping[str, str]
    free: set[str] = field(default_factory=set)
    """Servers that were released."""
    wiped: set[str] = field(default_factory=set)
    """Released servers with a certificate of their wipe."""
    ready: set[str] = field(default_factory=set)
    """Nodes that are Ready."""
    nodes: set[str] = field(default_factory=set)
    """All nodes."""
    running: dict[str, str] = field(default_factory=dict)
    """Name of the demonstration's running pod on each node."""
    last_failure: str = ""
    """The last failure; the operation may have been tried again since."""
    _machines: dict[str, Story] = field(default_factory=dict)
    _workflows: dict[str, tuple[str, Story]] = field(default_factory=dict)
    _owner: dict[str, str] = field(default_factory=dict)

    @property
    def progress(self) -> dict[str, str]:
        """Progress of the running action by server, for a line that is redrawn."""
        return {machine: story.progress for machine, story in self._workflows.values() if story.progress}

    def event(self, event: Event) -> list[Line]:
        """An Event appeared or was counted up."""
        machine = event.involved_object.name
        return self._titled(machine, self._story(machine).event(event)) if machine in self.kinds else []

    def power(self, machine: Machine) -> list[Line]:
        """A bmc Machine changed."""
        name = machine.metadata.name
        return self._titled(name, self._story(name).power(machine)) if name in self.kinds else []

    def workflow_changed(self, workflow: Workflow) -> list[Line]:
        """A Workflow changed: an installation or a wipe."""
        machine, name = workflow.spec.hardware_ref, workflow.metadata.name
        if machine not in self.kinds:
            return []
        _, story = self._workflows.setdefault(workflow.metadata.uid, (machine, Story(machine, name)))
        lines = self._titled(machine, story.workflow_changed(workflow))
        if story.failure:
            self.last_failure = f"{machine}: {story.failure}"
        return lines

    def workflow_deleted(self, workflow: Workflow) -> None:
        """A Workflow was deleted."""
        self._workflows.pop(workflow.metadata.uid, None)

    def hardware_changed(self, hardware: Hardware) -> list[Line]:
        """A server was claimed or released."""
        machine = hardware.metadata.name
        claim = claim_of(hardware)
        owner, previous = str(claim or ""), self._owner.get(machine, "")
        if machine not in self.kinds or owner == previous:
            return []
        self._owner[machine] = owner
        if owner:
            self.free.discard(machine)
            return self._titled(machine, [Line("claimed", f"by {owner}")])
        self.free.add(machine)
        return self._titled(machine, [*self._certificate(hardware), Line(FREE_LABEL, "released")])

    def _certificate(self, hardware: Hardware) -> list[Line]:
        try:
            document = msgspec.json.decode(hardware.metadata.annotations.get(WIPED, "{}"), type=dict[str, Any])
        except msgspec.MsgspecError:
            document = {}
        message = str(document.get("message", "")) or "no certificate"
        if document.get("wiped") is not True:
            return [Line(WIPED_LABEL, f"not wiped: {message}", True)]
        self.wiped.add(hardware.metadata.name)
        return [Line(WIPED_LABEL, message)]

    def nodes_seen(self, nodes: Iterable[Node]) -> list[Line]:
        """The nodes of the new cluster changed."""
        lines = []
        seen = {node.metadata.name: node for node in nodes}
        for name, node in seen.items():
            is_ready = any(
                condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions
            )
            if name not in self.nodes:
                lines += self._titled(name, [Line("node", f"joined as {node.spec.provider_id or 'a node'}")])
            if is_ready and name not in self.ready:
                lines += self._titled(name, [Line(READY_LABEL, _system(node))])
            if not is_ready and name in self.ready:
                lines += self._titled(name, [Line("node", "not Ready", True)])
            (self.ready.add if is_ready else self.ready.discard)(name)
        for name in sorted(self.nodes - set(seen)):
            lines += self._titled(name, [Line("node", "has left the cluster")])
            self.ready.discard(name)
        self.nodes = set(seen)
        return lines

    def pods_seen(self, pods: Iterable[Unstructured]) -> list[Line]:
        """The demonstration's pods in the new cluster changed."""
        lines, running = [], {}
        for pod in pods:
            spec, status = pod.body.get("spec", {}), pod.body.get("status", {})
            if status.get("phase") == "Running" and pod.metadata.deletion_timestamp is None:
                running[spec.get("nodeName", "")] = pod.metadata.name
                if self.running.get(spec.get("nodeName", "")) != pod.metadata.name:
                    text = f"{pod.metadata.name} runs, its address is {status.get('podIP', 'not known')}"
                    lines += self._titled(spec.get("nodeName", ""), [Line("pod", text)])
        self.running = running
        return lines

    def _story(self, machine: str) -> Story:
        return self._machines.setdefault(machine, Story(machine, ""))

    def title(self, machine: str) -> str:
        """A server's name with its kind."""
        return f"{machine} ({self.kinds[machine]})" if machine in self.kinds else machine

    def _titled(self, machine: str, lines: list[Line]) -> list[Line]:
        return [replace(line, about=self.title(machine)) for line in lines]


def _system(node: Node) -> str:
    info = node.status.node_info
    if info is None:
        return "Ready"
    return f"kubelet {info.kubelet_version}, {info.container_runtime_version}, {info.os_image}, {info.kernel_version}"
