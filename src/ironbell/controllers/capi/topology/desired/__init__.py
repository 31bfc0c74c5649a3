"""The desired objects of a topology, before and after the patches of its class."""
