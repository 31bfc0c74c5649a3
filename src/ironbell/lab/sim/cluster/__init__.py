"""A simulated workload cluster: its hosts, kubeadm, etcd, and the objects in its API."""
