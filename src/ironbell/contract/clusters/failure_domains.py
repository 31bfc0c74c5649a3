"""Spreading machines over failure domains, pure.

Ties are broken by a hash of the domain's name and a seed (a cluster's uid, say): always the same for one cluster, and
not the same for all, so that many clusters do not all begin with the same domain.

Source: kubernetes-sigs/cluster-api: util/failuredomains/failure_domains.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ironbell.contract.hashing import fnv32a


def fewest(domains: Sequence[str], all_machines: Iterable[str], current_machines: Iterable[str], *, seed: str) -> str:
    """Return the domain for the next machine; empty if there are no domains.

    Args:
        domains: names of the domains there are.
        all_machines: domains of all machines, one entry each.
        current_machines: domains of those that stay (up to date, not being deleted); they are compared first.
        seed: what breaks ties.
    """
    every, current = Counter(all_machines), Counter(current_machines)
    return min(domains, key=lambda name: (current[name], every[name], _tie(seed, name)), default="")


def most(domains: Sequence[str], all_machines: Iterable[str], eligible_machines: Iterable[str], *, seed: str) -> str:
    """The domain from which a machine is taken: the one with most eligible machines; empty if there are none.

    Args:
        domains: names of the domains there are.
        all_machines: domains of all machines, one entry each.
        eligible_machines: domains of those that may be deleted; they are compared first.
        seed: what breaks ties.
    """
    every, eligible = Counter(all_machines), Counter(eligible_machines)
    candidates = [name for name in domains if eligible[name]]
    return min(candidates, key=lambda name: (-eligible[name], -every[name], _tie(seed, name)), default="")


def _tie(seed: str, name: str) -> tuple[int, str]:
    return (fnv32a(f"{seed}/{name}".encode()), name)
