"""Simulated servers, alone and by the hundred."""
