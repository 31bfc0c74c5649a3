"""Controllers of the group `bmc.tinkerbell.org`: Machine, Job and Task.

Reconcilers decide; what talks to BMCs is in `bmc_access`, handed to the runtime by `performers`.
"""
