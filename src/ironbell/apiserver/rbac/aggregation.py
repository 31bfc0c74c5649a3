"""ClusterRoles that collect the rules of others, by label.

Source: kubernetes/kubernetes: pkg/controller/clusterroleaggregation.
"""

from __future__ import annotations

from collections.abc import Iterable

from ironbell.api.client import Conflict, NotFound, WriteOptions
from ironbell.apiserver.access.identity import SYSTEM
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.lifecycle.worklist import Worklist
from ironbell.apiserver.rbac.objects import CLUSTER_ROLES, GROUP, AggregationRule, PolicyRule, as_data, read_role
from ironbell.apiserver.store.entry import Change, Entry
from ironbell.apiserver.verbs.apply import apply

_OPTIONS = WriteOptions(field_manager="clusterrole-aggregation-controller", force=True)


class Aggregation:
    """Keeps the rules of collecting roles in step with those that they collect."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._collecting: set[str] = set()
        self.work: Worklist[str] = Worklist("role aggregation", self._handle, width=1)

    def start(self) -> None:
        """Check the stored roles, and follow changes."""
        for entry in self._context.store.objects(CLUSTER_ROLES).entries():
            self._check(entry)
        self._context.store.listen(self._follow)
        self._again()

    def _follow(self, change: Change) -> None:
        if change.entry.resource != CLUSTER_ROLES:
            return
        if change.deleted:
            self._collecting.discard(change.entry.name)
        else:
            self._check(change.entry)
        self._again()

    def _check(self, entry: Entry) -> None:
        if read_role(entry.body).aggregationRule is None:
            self._collecting.discard(entry.name)
        else:
            self._collecting.add(entry.name)

    def _again(self) -> None:
        for name in self._collecting:
            self.work.add(name)

    async def _handle(self, name: str) -> None:
        objects = self._context.store.objects(CLUSTER_ROLES)
        entry, info = objects.get(("", name)), self._context.resources.stored(CLUSTER_ROLES)
        if entry is None or info is None:
            return
        role = read_role(entry.body)
        if role.aggregationRule is None:
            return
        rules = collected(role.aggregationRule, (other for other in objects.entries() if other.name != name))
        if rules == list(role.rules or ()):
            return
        config = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [as_data(rule.rule) for rule in rules],
        }
        try:
            await apply(self._context, Request(SYSTEM, info, "", name, "", _OPTIONS), config)
        except (NotFound, Conflict):
            self.work.add(name)


def collected(rule: AggregationRule, roles: Iterable[Entry]) -> list[PolicyRule]:
    """The rules of the roles that the selectors find, each once: by selector, then by the role's name."""
    candidates = sorted(roles, key=lambda entry: entry.name)
    rules: list[PolicyRule] = []
    for selector in rule.clusterRoleSelectors or ():
        for entry in candidates:
            if selector.matches(entry.labels or {}):
                rules += (candidate for candidate in read_role(entry.body).rules or () if candidate not in rules)
    return rules
