"""Decisions about a control plane's Machines: which are created, replaced, remediated and deleted. Pure."""
