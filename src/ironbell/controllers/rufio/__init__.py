"""Controllers of the group `bmc.tinkerbell.org`: Machine, Job and Task.

Reconcilers decide. `bmc_access` keeps the sessions with BMCs; `controllers` connects it to the runtime.
"""
