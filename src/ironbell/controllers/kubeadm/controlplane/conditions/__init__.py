"""Conditions of a control plane and of its Machines, computed from the observed state. Pure."""
