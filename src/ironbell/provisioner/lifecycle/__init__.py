"""The life of a server between two owners: claim, installation, wipe and release, for owners of any kind.

An `OwnerKind` describes how one kind of object claims servers and where it keeps its markers; an `Owner` is one such
object (`owner`). A `HostWish` is its desired state, a `HostState` the observed one, and a `Step` the next writes and
the owner's report (`host`). A controller gathers the state with a `Lifecycle` (`observe`) and decides with `next_step`;
the other modules are the stages. A `Queue` orders owners that wait for servers, `Waves` bound how many servers of a
rack are powered on at the same time. `due` is the one controller here: it wipes servers whose complete wipe was
deferred.
"""
