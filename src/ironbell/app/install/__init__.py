"""Ironbell on a cluster: its manifests, generated from the code's own rules, and how they are applied and removed."""
