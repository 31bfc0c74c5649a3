"""Tables of networking and storage.

Source: kubernetes/kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ironbell.apiserver.tables.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Printer,
    age_of,
    column,
    entries,
    labels_text,
    name_of,
    named,
    nested,
    number,
    some,
    texts,
)
from ironbell.apiserver.verbs.scale import selector_text

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_WIDTH = 16


def _service(item: dict[str, Any]) -> list[Any]:
    spec = nested(item, "spec")
    ports = ",".join(_port(entry) for entry in entries(spec, "ports"))
    addresses = texts(spec, "clusterIPs") or [str(spec.get("clusterIP") or NONE)]
    return [spec.get("type", ""), addresses[0], _external(item), ports or NONE]


def _port(entry: dict[str, Any]) -> str:
    node = number(entry, "nodePort")
    return f"{number(entry, 'port')}{f':{node}' if node else ''}/{entry.get('protocol', '')}"


def _external(item: dict[str, Any]) -> str:
    spec = nested(item, "spec")
    given = texts(spec, "externalIPs")
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            return ",".join(filter(None, [_balancer(item), *given])) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return "<unknown>"


def _balancer(item: dict[str, Any]) -> str:
    addresses = entries(nested(item, "status", "loadBalancer"), "ingress")
    text = ",".join(sorted({str(entry.get("ip") or entry.get("hostname") or "") for entry in addresses} - {""}))
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def _endpoints(item: dict[str, Any]) -> str:
    shown: list[str] = []
    for subset in entries(item, "subsets"):
        addresses = [str(entry.get("ip", "")) for entry in entries(subset, "addresses")]
        ports = entries(subset, "ports")
        shown += [_joined(ip, number(port, "port")) for port in ports for ip in addresses] if ports else addresses
    return some(shown, len(shown))


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _slice(item: dict[str, Any]) -> list[Any]:
    ports = [str(entry.get("port") or entry.get("name") or "*") for entry in entries(item, "ports")]
    addresses = [address for entry in entries(item, "endpoints") for address in texts(entry, "addresses")]
    unset = [UNSET if text == NONE else text for text in (some(ports, len(ports)), some(addresses, len(addresses)))]
    return [item.get("addressType", ""), *unset]


def _ingress(item: dict[str, Any]) -> list[Any]:
    spec = nested(item, "spec")
    rules = entries(spec, "rules")
    hosts = [str(rule["host"]) for rule in rules if rule.get("host")]
    shown = some(hosts, len(rules)) if len(hosts) > 3 else ",".join(hosts)
    return [spec.get("ingressClassName") or NONE, shown or "*", _balancer(item), "80, 443" if spec.get("tls") else "80"]


def _default_name(item: dict[str, Any], *annotations: str) -> str:
    values = nested(item, "metadata", "annotations")
    is_default = any(values.get(annotation) == "true" for annotation in annotations)
    return f"{name_of(item)} (default)" if is_default else name_of(item)


def _ingress_class(item: dict[str, Any], now: datetime) -> list[Any]:
    spec, parameters = nested(item, "spec"), nested(item, "spec", "parameters")
    group = parameters.get("apiGroup")
    kind = f"{parameters.get('kind', '')}{f'.{group}' if group else ''}"
    shown = f"{kind}/{parameters.get('name', '')}" if parameters else NONE
    name = _default_name(item, "ingressclass.kubernetes.io/is-default-class")
    return [name, spec.get("controller", ""), shown, age_of(item, now)]


def _modes(modes: list[str]) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _phase(item: dict[str, Any]) -> str:
    is_deleting = nested(item, "metadata").get("deletionTimestamp")
    return "Terminating" if is_deleting else str(nested(item, "status").get("phase", ""))


def _class(item: dict[str, Any]) -> str:
    old = nested(item, "metadata", "annotations").get("volume.beta.kubernetes.io/storage-class")
    return str(old or nested(item, "spec").get("storageClassName") or "")


def _volume(item: dict[str, Any]) -> list[Any]:
    spec, claim = nested(item, "spec"), nested(item, "spec", "claimRef")
    return [
        nested(spec, "capacity").get("storage", "0"), _modes(texts(spec, "accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""), _phase(item),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "", _class(item),
        spec.get("volumeAttributesClassName") or UNSET, nested(item, "status").get("reason", ""),
    ]  # fmt: skip


def _claim(item: dict[str, Any]) -> list[Any]:
    spec, status = nested(item, "spec"), nested(item, "status")
    bound = [nested(status, "capacity").get("storage", "0"), _modes(texts(status, "accessModes"))]
    return [
        _phase(item), spec.get("volumeName", ""), *(bound if spec.get("volumeName") else ["", ""]), _class(item),
        spec.get("volumeAttributesClassName") or UNSET,
    ]  # fmt: skip


def _storage_class(item: dict[str, Any], now: datetime) -> list[Any]:
    name = _default_name(
        item, "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"
    )
    return [
        name, item.get("provisioner", ""), item.get("reclaimPolicy") or "Delete",
        item.get("volumeBindingMode") or "Immediate", bool(item.get("allowVolumeExpansion")), age_of(item, now),
    ]  # fmt: skip


_CLASS = column("StorageClass", "Class of the storage.")
_ATTRIBUTES = column("VolumeAttributesClass", "Class of the volume's attributes.")
_VOLUME_MODE = column("VolumeMode", "Whether it is a file system or a block device.", wide=True)
_CAPACITY = column("Capacity", "How much it holds.")
_ACCESS = column("Access Modes", "Permitted concurrent use.")
_STATUS = column("Status", "Phase of the volume or claim.")


def _volume_mode(item: dict[str, Any]) -> list[Any]:
    return [nested(item, "spec").get("volumeMode") or UNSET]


PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "Service"): named(
        column("Type", "How it is reached."), column("Cluster-IP", "Address inside the cluster."),
        column("External-IP", "Address outside the cluster."), column("Port(s)", "Its ports."), cells=_service,
        more=(column("Selector", "Selector of its pods.", wide=True),),
        more_cells=lambda item: [labels_text(nested(item, "spec", "selector"))],
    ),
    ("", "Endpoints"): named(
        column("Endpoints", "Addresses of the service's pods."), cells=lambda item: [_endpoints(item)]
    ),
    ("discovery.k8s.io", "EndpointSlice"): named(
        column("AddressType", "Type of its addresses."), column("Ports", "Its ports."),
        column("Endpoints", "Its addresses."), cells=_slice,
    ),
    ("networking.k8s.io", "Ingress"): named(
        column("Class", "Class that serves it."), column("Hosts", "Host names of its rules."),
        column("Address", "Where it is reached."), column("Ports", "Its ports."), cells=_ingress,
    ),
    ("networking.k8s.io", "IngressClass"): Printer(
        (NAME, column("Controller", "Controller that serves it."), column("Parameters", "Further parameters."), AGE),
        _ingress_class,
    ),
    ("networking.k8s.io", "NetworkPolicy"): named(
        column("Pod-Selector", "Selector of its pods."),
        cells=lambda item: [selector_text(nested(item, "spec", "podSelector")) or NONE],
    ),
    ("", "PersistentVolume"): named(
        _CAPACITY, _ACCESS, column("Reclaim Policy", "Handling of a released volume."), _STATUS,
        column("Claim", "Claim that it is bound to."),
        _CLASS, _ATTRIBUTES, column("Reason", "Reason of the phase."), cells=_volume, more=(_VOLUME_MODE,),
        more_cells=_volume_mode,
    ),
    ("", "PersistentVolumeClaim"): named(
        _STATUS, column("Volume", "Volume that it is bound to."), _CAPACITY, _ACCESS, _CLASS, _ATTRIBUTES, cells=_claim,
        more=(_VOLUME_MODE,), more_cells=_volume_mode,
    ),
    ("storage.k8s.io", "StorageClass"): Printer(
        (
            NAME, column("Provisioner", "Provisioner of volumes."),
            column("ReclaimPolicy", "Handling of released volumes."),
            column("VolumeBindingMode", "When a volume is chosen."),
            column("AllowVolumeExpansion", "Whether volumes can grow."), AGE,
        ),
        _storage_class,
    ),
    ("storage.k8s.io", "VolumeAttachment"): named(
        column("Attacher", "Driver that attaches it."), column("PV", "The volume."),
        column("Node", "Node that it is attached to."),
        column("Attached", "Whether it is attached.", type="boolean"),
        cells=lambda item: [
            nested(item, "spec").get("attacher", ""), nested(item, "spec", "source").get("persistentVolumeName", ""),
            nested(item, "spec").get("nodeName", ""), bool(nested(item, "status").get("attached")),
        ],
    ),
    ("storage.k8s.io", "CSINode"): named(
        column("Drivers", "How many drivers it has.", type="integer"),
        cells=lambda item: [len(entries(nested(item, "spec"), "drivers"))],
    ),
}  # fmt: skip
