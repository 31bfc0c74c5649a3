"""KubeadmConfig: what a machine runs at its first boot to become a node."""
