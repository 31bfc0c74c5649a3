"""The controller of Toys, and what it may do with the API."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ironbell.contract.access import Permissions, may, may_read, policy_rules
from ironbell.contract.system import Runtime
from ironbell.controllers.toy.kinds import TOY, Toy
from ironbell.kube.manager.controller import Controller
from ironbell.kube.decision import DONE, Decision, Key, patch_status
from ironbell.kube.reconciler import Declaration, Cache


class ToyReconciler:
    """Gives each toy its size."""

    name = "toy"
    declaration = Declaration(TOY)

    def observe(self, cache: Cache, key: Key) -> Toy | None:
        """Read the toy."""
        return cache.get(TOY, *key)

    def decide(self, observed: Toy, now: datetime) -> Decision:
        """Report its size."""
        if observed.status.size == observed.spec.size:
            return DONE
        return Decision((patch_status(TOY, observed, {"size": observed.spec.size}),))


PERMISSIONS: Final = Permissions(
    reads=policy_rules(may_read(TOY)),
    writes={ToyReconciler.name: policy_rules([may(TOY, "patch", subresource="status")])},
)


def create_controllers(runtime: Runtime) -> list[Controller]:
    """Create the system's controllers for a process."""
    return [Controller(ToyReconciler(), api=runtime.api_of(ToyReconciler.name))]
