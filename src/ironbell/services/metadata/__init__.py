"""Metadata for installed systems and actions: EC2-style, NoCloud and `/metadata` (Tinkerbell's Tootles, before Hegel)."""
