"""Tables of the kinds that every cluster has: namespaces, data, nodes, events, leases, definitions.

Source: kubernetes/kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ironbell.api.kind import Column
from ironbell.apiserver.tables.cells import AGE, NAME, Printer, age, age_of, column, entries, name_of, named, nested
from ironbell.base.wording import INVALID


def _data_count(item: dict[str, Any]) -> int:
    return len(nested(item, "data")) + len(nested(item, "binaryData"))


def _node_cells(item: dict[str, Any]) -> list[Any]:
    status = nested(item, "status")
    ready = next((c.get("status") for c in entries(status, "conditions") if c.get("type") == "Ready"), None)
    words = [{"True": "Ready", None: "Unknown"}.get(ready, "NotReady")]
    if nested(item, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    return [",".join(words), _node_roles(nested(item, "metadata", "labels"))]


def _node_roles(labels: dict[str, Any]) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = {label.removeprefix(prefix) for label in labels if label.startswith(prefix)}
    roles.add(str(labels.get("kubernetes.io/role", "")))
    return ",".join(sorted(roles - {""})) or "<none>"


def _node_row(item: dict[str, Any], now: datetime) -> list[Any]:
    status, info = nested(item, "status"), nested(item, "status", "nodeInfo")
    addresses = {entry.get("type"): entry.get("address") for entry in reversed(entries(status, "addresses"))}
    return [
        name_of(item),
        *_node_cells(item),
        age_of(item, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        info.get("osImage") or "<unknown>",
        _kernel(info),
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _kernel(info: dict[str, Any]) -> str:
    kernel, architecture = info.get("kernelVersion") or "<unknown>", info.get("architecture")
    return f"{kernel} ({architecture})" if architecture else str(kernel)


def _event_row(item: dict[str, Any], now: datetime) -> list[Any]:
    """The row of an event of either group: events.k8s.io has other names for the same fields."""
    involved = nested(item, "involvedObject") or nested(item, "regarding")
    series, source = nested(item, "series"), nested(item, "source") or nested(item, "deprecatedSource")
    first = item.get("firstTimestamp") or item.get("deprecatedFirstTimestamp") or item.get("eventTime")
    last = item.get("lastTimestamp") or item.get("deprecatedLastTimestamp") or first
    kind, name = str(involved.get("kind", "")).lower(), involved.get("name", "")
    reporter = item.get("reportingComponent") or item.get("reportingController")
    source_parts = (source.get("component") or reporter, source.get("host") or item.get("reportingInstance"))
    return [
        age(series.get("lastObservedTime") or last, now),
        item.get("type", ""),
        item.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        involved.get("fieldPath", ""),
        ", ".join(str(text) for text in source_parts if text),
        str(item.get("message") or item.get("note") or "").strip(),
        age(first, now),
        series.get("count") or item.get("count") or item.get("deprecatedCount") or 1,
        name_of(item),
    ]


def _created_at(item: dict[str, Any], _now: datetime) -> list[Any]:
    return [name_of(item), nested(item, "metadata").get("creationTimestamp") or INVALID]


_EVENT = Printer(
    (
        column("Last Seen", "Time since this was last observed."),
        column("Type", "Normal or Warning."),
        column("Reason", "Short machine-readable cause."),
        column("Object", "The object that this is about."),
        column("Subobject", "The part of the object that this is about.", wide=True),
        column("Source", "Component that reported the event.", wide=True),
        column("Message", "Description of the event."),
        column("First Seen", "Time since this was first observed.", wide=True),
        column("Count", "How many times this was observed.", wide=True),
        Column("Name", "", format="name", priority=1, description="Name of the event."),
    ),
    _event_row,
)
_NODE = Printer(
    (
        NAME,
        column("Status", "Whether the node is ready and takes pods."),
        column("Roles", "Roles from the node's labels."),
        AGE,
        column("Version", "Version of the kubelet."),
        column("Internal-IP", "Address inside the cluster.", wide=True),
        column("External-IP", "Address outside the cluster.", wide=True),
        column("OS-Image", "Operating system as the node reports it.", wide=True),
        column("Kernel-Version", "Kernel as the node reports it.", wide=True),
        column("Container-Runtime", "Container runtime as the node reports it.", wide=True),
    ),
    _node_row,
)
PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "Namespace"): named(
        column("Status", "Active, or Terminating while it is being deleted."),
        cells=lambda item: [nested(item, "status").get("phase", "")],
    ),
    ("", "Secret"): named(
        column("Type", "Type of the secret's data."),
        column("Data", "Number of keys.", type="string"),
        cells=lambda item: [item.get("type", ""), len(nested(item, "data"))],
    ),
    ("", "ConfigMap"): named(column("Data", "Number of keys."), cells=lambda item: [_data_count(item)]),
    ("", "Node"): _NODE,
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("coordination.k8s.io", "Lease"): named(
        column("Holder", "Holder of the lease."), cells=lambda item: [nested(item, "spec").get("holderIdentity", "")]
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Printer(
        (NAME, column("Created At", "When the definition was created.", type="date")), _created_at
    ),
}
