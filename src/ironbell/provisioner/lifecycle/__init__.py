"""The life of a server between two owners: claim, installation, wipe and release, for whichever object wants one."""
