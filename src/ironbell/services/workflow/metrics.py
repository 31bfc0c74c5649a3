"""Counters of the workflow service. `grpc_server_handled_total` has upstream's name and labels."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

HANDLED = Counter("grpc_server_handled", "gRPC calls answered.", ["grpc_service", "grpc_method", "grpc_code"])
MALFORMED = Counter("ironbell_workflow_malformed", "Input on the gRPC port that is no proper request.", ["kind"])
IGNORED = Counter("ironbell_workflow_reports_ignored", "Reports that changed nothing.", ["reason"])
REBOOTS = Counter("ironbell_workflow_reboots", "Machines that rebooted in the middle of a Workflow.")
SILENT = Counter("ironbell_workflow_silent_agents", "Agents that fell silent in the middle of an action.")
MACHINE_REPORTS = Counter("ironbell_workflow_machine_reports", "Reports about machines.", ["kind"])
LOG_BYTES = Counter("ironbell_workflow_log_bytes", "Bytes added to action logs.")
WAITING = Gauge("ironbell_workflow_waiting_agents", "Agents whose call waits for an action.")
CONFLICTS = Counter("ironbell_workflow_conflicts", "Writes that somebody else was faster with.")
CONNECTIONS = Gauge("ironbell_workflow_connections", "Open connections on the gRPC port.")
CONNECTIONS_LIMIT = Gauge("ironbell_workflow_connections_limit", "How many connections the gRPC port keeps at most.")
CONNECTIONS_REFUSED = Counter(
    "ironbell_workflow_connections_refused",
    "Connections refused on the gRPC port: an address opens them too quickly (rate) or has too many (address), or all "
    "together are too many (total).",
    ["limit"],
)
CONNECTIONS_CLOSED = Counter(
    "ironbell_workflow_connections_closed",
    "Connections that the gRPC port closed: too much was sent (flood), no HTTP/2 (malformed), no call for long (idle), "
    "a call without an end (stuck), room for another (gave way).",
    ["reason"],
)
