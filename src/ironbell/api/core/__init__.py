"""Kubernetes' own kinds, as far as bare metal needs them: structs to read, `Kind` values to address them by.

The embedded API serves all of them as built-in resources; on a cluster they are the cluster's.
"""

from ironbell.api.core.configmap import CONFIG_MAP, ConfigMap
from ironbell.api.core.customresourcedefinition import CUSTOM_RESOURCE_DEFINITION, CustomResourceDefinition
from ironbell.api.core.event import EVENT, EVENTS_EVENT, Event, EventsEvent, ObjectReference
from ironbell.api.core.kinddefinition import KIND_DEFINITION, KindDefinition
from ironbell.api.core.lease import LEASE, Lease
from ironbell.api.core.namespace import NAMESPACE, Namespace
from ironbell.api.core.node import NODE, Node
from ironbell.api.core.secret import SECRET, Secret
from ironbell.api.core.serviceaccount import SERVICE_ACCOUNT, ServiceAccount

__all__ = [
    "CONFIG_MAP",
    "CUSTOM_RESOURCE_DEFINITION",
    "EVENT",
    "EVENTS_EVENT",
    "KIND_DEFINITION",
    "LEASE",
    "NAMESPACE",
    "NODE",
    "SECRET",
    "SERVICE_ACCOUNT",
    "ConfigMap",
    "CustomResourceDefinition",
    "Event",
    "EventsEvent",
    "KindDefinition",
    "Lease",
    "Namespace",
    "Node",
    "ObjectReference",
    "Secret",
    "ServiceAccount",
]
