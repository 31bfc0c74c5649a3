"""Machines made of Linux namespaces and a cgroup: native speed on a host without KVM.

A stand-in takes firmware's place: it asks DHCP as a PXE ROM and then as iPXE does, fetches what they would fetch, obeys
the script, and unpacks the served initramfs as the kernel would. From there on everything is real: the boot stage and
the agent of the in-memory OS, the actions on a disk (a loop device over the machine's file), and the installed system,
started from that disk with its own systemd as process 1.

What is shared with the host: the kernel, its modules and its clock, which a machine may not touch.
"""
