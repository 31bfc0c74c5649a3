"""KubeadmControlPlane: the Machines of a control plane that kubeadm makes, one by one, and their etcd."""
