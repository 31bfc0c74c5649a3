"""Admission of kubeadm's objects: defaults and validation, over plain data."""
