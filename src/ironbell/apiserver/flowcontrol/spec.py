"""FlowSchemas and PriorityLevelConfigurations as they are stored.

Source: kubernetes/api: flowcontrol/v1/types.go.
"""

from __future__ import annotations

import msgspec

GROUP = "flowcontrol.apiserver.k8s.io"
SCHEMAS = f"flowschemas.{GROUP}"
LEVELS = f"prioritylevelconfigurations.{GROUP}"
EXEMPT, CATCH_ALL = "exempt", "catch-all"
"""Names of the mandatory schemas and levels."""
AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"
DANGLING = "Dangling"
BY_USER, BY_NAMESPACE = "ByUser", "ByNamespace"


class Named(msgspec.Struct, frozen=True):
    """A user or a group, or a reference to a level."""

    name: str = ""


class Account(msgspec.Struct, frozen=True):
    """A ServiceAccount; `*` stands for all of the namespace."""

    namespace: str = ""
    name: str = ""


class Subject(msgspec.Struct, frozen=True, rename="camel"):
    """Sender of requests: a user, a group or a ServiceAccount."""

    kind: str = ""
    user: Named | None = None
    group: Named | None = None
    service_account: Account | None = None


class ResourceRule(msgspec.Struct, frozen=True, rename="camel"):
    """Requests for resources; `*` stands for all."""

    verbs: tuple[str, ...] | None = None
    api_groups: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    cluster_scope: bool = False
    namespaces: tuple[str, ...] | None = None


class UrlRule(msgspec.Struct, frozen=True):
    """Requests for other paths; `*` stands for all."""

    verbs: tuple[str, ...] | None = None
    urls: tuple[str, ...] | None = msgspec.field(default=None, name="nonResourceURLs")


class Rules(msgspec.Struct, frozen=True, rename="camel"):
    """Requests of some subjects for some resources or paths."""

    subjects: tuple[Subject, ...] | None = None
    resource_rules: tuple[ResourceRule, ...] | None = None
    non_resource_rules: tuple[UrlRule, ...] | None = None


class Method(msgspec.Struct, frozen=True):
    """The attribute by which the flows of a schema differ."""

    type: str = ""


class Condition(msgspec.Struct, frozen=True):
    """A condition, as far as it is compared."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class SchemaSpec(msgspec.Struct, frozen=True, rename="camel"):
    """A FlowSchema's specification."""

    priority_level_configuration: Named = Named()
    matching_precedence: int = 0
    distinguisher_method: Method | None = None
    rules: tuple[Rules, ...] | None = None


class SchemaStatus(msgspec.Struct, frozen=True):
    """A FlowSchema's status."""

    conditions: tuple[Condition, ...] | None = None


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""
    generation: int = 0
    annotations: dict[str, str] | None = None


class FlowSchema(msgspec.Struct, frozen=True):
    """Requests that are alike, and the level that they belong to."""

    metadata: _Meta = _Meta()
    spec: SchemaSpec = SchemaSpec()
    status: SchemaStatus = SchemaStatus()

    @property
    def level(self) -> str:
        """The name of its priority level."""
        return self.spec.priority_level_configuration.name


class Queuing(msgspec.Struct, frozen=True, rename="camel"):
    """Limits of waiting requests."""

    queues: int = 0
    hand_size: int = 0
    queue_length_limit: int = 0


class Response(msgspec.Struct, frozen=True):
    """The response to a request while the level has no seat: `Queue` or `Reject`."""

    type: str = ""
    queuing: Queuing | None = None


class Limited(msgspec.Struct, frozen=True, rename="camel"):
    """Seats of a level."""

    nominal_concurrency_shares: int = 30
    limit_response: Response = Response()
    lendable_percent: int = 0
    borrowing_limit_percent: int | None = None


class Exempt(msgspec.Struct, frozen=True, rename="camel"):
    """Seats that an unlimited level takes and lends."""

    nominal_concurrency_shares: int = 0
    lendable_percent: int = 0


class LevelSpec(msgspec.Struct, frozen=True):
    """A PriorityLevelConfiguration's specification."""

    type: str = ""
    limited: Limited | None = None
    exempt: Exempt | None = None


class PriorityLevel(msgspec.Struct, frozen=True):
    """A share of the server for some requests."""

    metadata: _Meta = _Meta()
    spec: LevelSpec = LevelSpec()

    @property
    def is_exempt(self) -> bool:
        return self.spec.type == "Exempt"


read_schema = msgspec.json.Decoder(FlowSchema).decode
read_level = msgspec.json.Decoder(PriorityLevel).decode
