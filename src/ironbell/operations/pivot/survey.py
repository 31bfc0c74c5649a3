"""What there is on both sides, read anew each time that it matters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from ironbell.api.bmc import JOB
from ironbell.api.clusterctl import PROVIDER
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.operations.pivot import checks, graph
from ironbell.operations.pivot.graph import Plan, Wanted
from ironbell.operations.pivot.items import (
    BMC_MACHINE,
    CORE,
    Item,
    Key,
    MovedKind,
    Object,
    moved_kinds,
    served_versions,
)
from ironbell.operations.pivot.site import DEFINITIONS, Site


class Survey:
    """Looks at both APIs; definitions are read once."""

    def __init__(self, source: Site, target: Site) -> None:
        self.source, self.target = source, target
        self._definitions: dict[str, list[Object]] = {}

    async def definitions(self, site: Site) -> list[Object]:
        """The CustomResourceDefinitions of one side."""
        if site.side not in self._definitions:
            self._definitions[site.side] = await site.objects(DEFINITIONS)
        return self._definitions[site.side]

    async def plan(self, wanted: Wanted) -> Plan:
        """What moves as things are now."""
        custom = [
            item for kind in moved_kinds(await self.definitions(self.source)) for item in await self.source.items(kind)
        ]
        namespaces: set[str] = set(wanted.namespaces) or {""}
        if "" not in namespaces:
            namespaces |= {item.namespace for item in graph.plan(custom, wanted).items if item.namespace}
            namespaces |= {
                reference["namespace"] for item in custom if item.kind.name == BMC_MACHINE
                if (reference := (item.spec.get("connection") or {}).get("authSecretRef") or {}).get("namespace")
            }  # fmt: skip
        core = [
            item for kind in CORE for namespace in sorted(namespaces)
            for item in await self.source.items(kind, namespace)
        ]  # fmt: skip
        return graph.plan([*custom, *core], wanted)

    async def there(self, found: Plan) -> dict[Key, Item]:
        """What the target has under the names of what moves, and more."""
        wanted: dict[MovedKind, set[str]] = {}
        for item in found.items:
            wanted.setdefault(item.kind, set()).add(item.namespace if item.kind in CORE else "")
        there: dict[Key, Item] = {}
        for kind, namespaces in wanted.items():
            for namespace in sorted(namespaces):
                there |= {item.key: item for item in await self.target.items(kind, namespace)}
        return there

    async def problems(self, found: Plan, there: Mapping[Key, Item], pivot: str, *, adopts: bool = False) -> list[str]:
        """All that speaks against it now."""
        served = served_versions(await self.definitions(self.target))
        names = {
            f"{one['spec']['names']['kind']}.{one['spec']['group']}" for one in await self.definitions(self.source)
        }

        async def busy(kind: str, objects: Callable[[], Awaitable[list[Object]]]) -> list[Object]:
            return await objects() if kind in names else []

        return [
            *checks.torn(found),
            *checks.unserved(found, served),
            *checks.unfinished(found, adopts=adopts),
            *checks.strangers(found, there, pivot, adopts=adopts),
            *checks.outdated(
                await self.source.objects(PROVIDER.collection), await self.target.objects(PROVIDER.collection)
            ),
            *checks.running(
                found,
                await busy("Workflow.tinkerbell.org", lambda: self.source.objects(WORKFLOW.collection)),
                await busy("Job.bmc.tinkerbell.org", lambda: self.source.objects(JOB.collection)),
            ),
        ]
