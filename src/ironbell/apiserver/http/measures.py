"""Metrics of the HTTP face, under the names that Kubernetes' own API server uses.

Source: kubernetes/apiserver: pkg/endpoints/metrics/metrics.go.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter(
    "apiserver_request",
    "Requests answered.",
    ["verb", "group", "version", "resource", "subresource", "code"],
)
DURATION = Histogram(
    "apiserver_request_duration_seconds",
    "Time from a request's head to its answer; streams are not counted.",
    ["verb"],
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
)
IN_FLIGHT = Gauge("apiserver_current_inflight_requests", "Requests being answered, streams included.")
STREAMS = Gauge("apiserver_longrunning_requests", "Streams open: watches and logs.")
AUDIT_DROPPED = Counter("apiserver_audit_dropped", "Lines of the audit log that were not written.")
QUEUED = Gauge("apiserver_flowcontrol_current_inqueue_requests", "Requests that wait for their turn.", ["kind"])
NOMINAL = Gauge(
    "apiserver_flowcontrol_nominal_limit_seats", "Seats that are a priority level's share.", ["priority_level"]
)
REJECTED = Counter("apiserver_rejected_requests", "Requests rejected because too many were being served.")
