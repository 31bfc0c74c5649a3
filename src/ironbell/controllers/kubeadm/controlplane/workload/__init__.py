"""Reads and writes of a control plane in its workload cluster: etcd, addons, kubeadm's ConfigMap."""
