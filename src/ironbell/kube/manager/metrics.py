"""Metrics of the runtime, under controller-runtime's names where it has them.

No label names a single object: the number of series does not grow with the fleet.

Source: kubernetes-sigs/controller-runtime: pkg/internal/controller/metrics, pkg/metrics/workqueue.go.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_FAST = (1e-5, 1e-4, 1e-3, 5e-3, 2.5e-2, 0.1, 0.5, 1, 5, 10, 30, 60)

reconcile_total = Counter("controller_runtime_reconcile", "Reconciles by their result.", ["controller", "result"])
reconcile_errors = Counter("controller_runtime_reconcile_errors", "Reconciles that failed.", ["controller"])
terminal_errors = Counter(
    "controller_runtime_terminal_reconcile_errors", "Reconciles that failed for good.", ["controller"]
)
panics = Counter("controller_runtime_reconcile_panics", "Reconciles that ended in a defect.", ["controller"])
conflicts = Counter("ironbell_reconcile_conflicts", "Decisions stopped because somebody wrote first.", ["controller"])
reconcile_time = Histogram(
    "controller_runtime_reconcile_time_seconds", "Time of a reconcile.", ["controller"], buckets=_FAST
)
active_workers = Gauge("controller_runtime_active_workers", "Reconciles in progress.", ["controller"])
max_workers = Gauge("controller_runtime_max_concurrent_reconciles", "Reconciles possible at a time.", ["controller"])
writes = Counter("ironbell_reconcile_writes", "Writes to the API that succeeded.", ["controller"])

_QUEUE = ["name", "controller"]
queue_depth = Gauge("workqueue_depth", "Keys that wait for a worker.", _QUEUE)
queue_adds = Counter("workqueue_adds", "Keys added.", _QUEUE)
queue_retries = Counter("workqueue_retries", "Keys added again after a failure.", _QUEUE)
queue_wait = Histogram("workqueue_queue_duration_seconds", "Time a key waits for a worker.", _QUEUE, buckets=_FAST)
queue_work = Histogram("workqueue_work_duration_seconds", "Time a worker spends on a key.", _QUEUE, buckets=_FAST)
queue_unfinished = Gauge(
    "workqueue_unfinished_work_seconds", "Time that workers have spent on the keys they are at, together.", _QUEUE
)
queue_longest = Gauge(
    "workqueue_longest_running_processor_seconds", "Time the longest-running worker has spent on its key.", _QUEUE
)

facts_queried = Counter("ironbell_facts_asked", "Queries about the world outside.", ["controller", "question"])
facts_failed = Counter("ironbell_facts_failed", "Queries that failed.", ["controller", "question"])
facts_held = Gauge("ironbell_facts_held", "Answers held.", ["controller"])

object_phases = Gauge("ironbell_objects", "Objects of a kind by their phase or state.", ["kind", "phase"])
object_conditions = Gauge(
    "ironbell_object_conditions",
    "Objects of a kind that have a condition with a status.",
    ["kind", "condition", "status"],
)

informer_errors = Counter("ironbell_informer_errors", "Lists and watches that failed.", ["kind"])
informer_undecodable = Counter("ironbell_informer_undecodable", "Objects left out for their form.", ["kind"])
events_dropped = Counter("ironbell_events_dropped", "Events not written, for their number or a failure.", ["why"])
loop_lag = Histogram(
    "ironbell_loop_lag_seconds",
    "Delay with which the event loop runs callbacks.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0),
)
is_leader = Gauge("leader_election_master_status", "Whether this process holds the lease.", ["name"])
client_requests = Counter("rest_client_requests", "Requests to the API server.", ["code", "method", "host"])


class ControllerMetrics:
    """The metrics of one controller, looked up once."""

    def __init__(self, name: str) -> None:
        self.active = active_workers.labels(name)
        self.writes = writes.labels(name)
        self.conflicts = conflicts.labels(name)
        self.errors = reconcile_errors.labels(name)
        self.terminal = terminal_errors.labels(name)
        self.panics = panics.labels(name)
        self._results = {
            result: reconcile_total.labels(name, result) for result in ("success", "error", "requeue", "requeue_after")
        }
        self._time = reconcile_time.labels(name)

    def finished(self, result: str, took_s: float) -> None:
        """Count one reconcile."""
        self._results[result].inc()
        self._time.observe(took_s)
