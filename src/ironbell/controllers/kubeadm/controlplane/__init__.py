"""KubeadmControlPlane: the Machines of a control plane, which are created, upgraded and deleted one at a time."""
