"""Logs of actions: how they are received, stored, and read."""
