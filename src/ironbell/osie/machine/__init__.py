"""Programs of the in-memory OS that run between the kernel and the agent: network, clock, trust, supervision.

Imports only the standard library and `ironbell.base`: it must work when everything else in the image is broken.
"""
