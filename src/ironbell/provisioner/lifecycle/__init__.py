"""The life of a server between two owners: claim, installation, wipe and release, for whichever object wants one.

An `OwnerKind` says how one kind of object claims servers and where it keeps its markers; an `Owner` is one such object
(`owner`). A `HostWish` is what it wants, a `HostState` what is known, a `Step` what is done next and what the owner
reports (`host`). A controller gathers the state with a `Lifecycle` (`observe`) and decides with `stages.next_step`; the
other modules are the stages. A `Queue` orders owners that wait for servers, `Waves` bound how many servers of a rack
are powered on at the same time. `due` is the one controller here: it wipes servers whose complete wipe was deferred.
"""
