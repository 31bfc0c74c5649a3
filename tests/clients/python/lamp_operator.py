"""A kopf operator: it fills the status of what is made or changed, keeps a child, and lets go of what is deleted."""

import kopf
from kubernetes import client, config

GROUP = "kopf.test.ironbell.dev"


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: object) -> None:
    config.load_kube_config()
    settings.peering.name = "ironbell-test"
    settings.peering.mandatory = True
    settings.posting.enabled = True
    settings.persistence.finalizer = f"{GROUP}/finalizer"


@kopf.on.create(GROUP, "v1", "lamps")
def create(
    body: kopf.Body, spec: kopf.Spec, name: str, namespace: str, patch: kopf.Patch, **_: object
) -> dict[str, str]:
    child = {"metadata": {"name": f"{name}-child"}, "data": {"colour": spec["colour"]}}
    kopf.adopt(child, owner=body)
    client.CoreV1Api().create_namespaced_config_map(namespace, child)
    patch.status["colour"] = spec["colour"]
    kopf.info(body, reason="Lit", message=f"it shines {spec['colour']}")
    return {"made": "yes"}


@kopf.on.update(GROUP, "v1", "lamps", field="spec.colour")
def update(old: str, new: str, name: str, namespace: str, patch: kopf.Patch, **_: object) -> None:
    client.CoreV1Api().patch_namespaced_config_map(f"{name}-child", namespace, {"data": {"colour": new}})
    patch.status["colour"] = new
    patch.status["before"] = old


@kopf.on.delete(GROUP, "v1", "lamps")
def delete(name: str, namespace: str, **_: object) -> None:
    client.CoreV1Api().create_namespaced_config_map(namespace, {"metadata": {"name": f"{name}-off"}})
