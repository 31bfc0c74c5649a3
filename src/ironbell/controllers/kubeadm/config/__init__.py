"""KubeadmConfig: the bootstrap data that turn a machine into a node at its first boot."""
