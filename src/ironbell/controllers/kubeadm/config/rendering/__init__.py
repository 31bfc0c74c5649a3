"""Bootstrap data: cloud-init documents and kubeadm's configuration from a KubeadmConfig. Pure."""
