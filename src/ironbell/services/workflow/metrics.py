"""Counters of the workflow service. `grpc_server_handled_total` has upstream's name and labels."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

HANDLED = Counter("grpc_server_handled", "Completed gRPC calls.", ["grpc_service", "grpc_method", "grpc_code"])
MALFORMED = Counter("ironbell_workflow_malformed", "Rejected input on the gRPC port, by kind of defect.", ["kind"])
IGNORED = Counter("ironbell_workflow_reports_ignored", "Reports of agents that changed nothing.", ["reason"])
REBOOTS = Counter("ironbell_workflow_reboots", "Machines that rebooted in the middle of a Workflow.")
SILENT = Counter("ironbell_workflow_silent_agents", "Agents that stopped sending heartbeats during an action.")
MACHINE_REPORTS = Counter("ironbell_workflow_machine_reports", "Reports of machines, such as a crash.", ["kind"])
LOG_BYTES = Counter("ironbell_workflow_log_bytes", "Bytes added to action logs.")
WAITING = Gauge("ironbell_workflow_waiting_agents", "Agents whose call waits for an action.")
CONFLICTS = Counter("ironbell_workflow_conflicts", "Writes that conflicted with another client's write.")
CONNECTIONS = Gauge("ironbell_workflow_connections", "Open connections on the gRPC port.")
CONNECTIONS_LIMIT = Gauge("ironbell_workflow_connections_limit", "Most connections that the gRPC port keeps open.")
CONNECTIONS_REJECTED = Counter(
    "ironbell_workflow_connections_refused",
    "Connections rejected on the gRPC port: an address opens them too quickly (rate) or has too many (address), or the "
    "port has too many (total).",
    ["limit"],
)
CONNECTIONS_CLOSED = Counter(
    "ironbell_workflow_connections_closed",
    "Connections that the gRPC port closed: the client sent too much (flood) or not HTTP/2 (malformed), made no call "
    "for long (idle), a call lasted too long (stuck), or a new connection took its place (gave way).",
    ["reason"],
)
