"""Metrics of the connections to workload clusters. No label names a cluster: the series do not grow with the fleet."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

followed = Gauge("ironbell_workload_clusters", "Workload clusters that a connection is wanted to.")
connected = Gauge("ironbell_workload_connected", "Workload clusters that there is a connection to.")
probes = Counter("ironbell_workload_probes", "Probes of workload clusters by their result.", ["status"])
