"""Patches as functions over plain data: merge, JSON, strategic, apply."""
