"""Conditions of a control plane and of its Machines, computed from what is known. Pure."""
