"""What a control plane reads and changes inside its workload cluster: etcd, addons, kubeadm's ConfigMap."""
