"""Conversion of the group's kinds between v1beta1 and v1beta2."""
