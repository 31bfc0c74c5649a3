"""Simulated machines and clusters: objects and protocol only, thousands of them.

The kinds are those that Cluster API's own test provider has (DevCluster, DevMachine and their templates). A DevMachine
boots after a delay, reads its real bootstrap data, and behaves as kubeadm and a kubelet would toward a cluster whose
API is an embedded one in memory.
"""
