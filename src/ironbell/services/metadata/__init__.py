"""Metadata for installed systems and actions: EC2-style, NoCloud, `/metadata` (Tootles, formerly Hegel)."""
