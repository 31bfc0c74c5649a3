"""Uses a Kubernetes API through kr8s. Prints a line for each step that holds."""

import asyncio
import contextlib
import uuid

import kr8s
from kr8s.asyncio.objects import ConfigMap, Deployment, Namespace, Secret, new_class


def step(name: str, holds: object = True) -> None:
    assert holds, name
    print(name, flush=True)


async def main() -> None:
    api = await kr8s.asyncio.api()
    step("version", (await api.version())["major"] == "1")
    resources = await api.api_resources()
    step("api resources", any(resource["name"] == "configmaps" for resource in resources))
    namespace = f"kr8s-{uuid.uuid4().hex[:8]}"
    space = await Namespace({"metadata": {"name": namespace}})
    await space.create()
    await space.wait("jsonpath='{.status.phase}'=Active", timeout=20)
    step("wait for a value")
    one = await ConfigMap({"metadata": {"name": "one", "namespace": namespace}, "data": {"a": "1"}})
    await one.create()
    step("create", await one.exists())
    await one.patch({"data": {"b": "2"}})
    step("patch", one.data == {"a": "1", "b": "2"})
    await one.label({"marked": "yes"})
    await one.annotate({"note": "hello"})
    await one.refresh()
    step("label and annotate", one.labels["marked"] == "yes" and one.annotations["note"] == "hello")
    found = [item async for item in api.get("configmaps", namespace=namespace, label_selector={"marked": "yes"})]
    step("list by label", [item.name for item in found] == ["one"])
    found = [item async for item in api.get("cm", "one", namespace=namespace)]
    step("short name", [item.name for item in found] == ["one"])
    try:
        await ConfigMap.get("none", namespace=namespace, timeout=0.1)
    except kr8s.NotFoundError:
        step("a missing object is not found")
    try:
        await one.create()
    except kr8s.ServerError as error:
        step("a second of a name is refused", error.response.status_code == 409)
    secret = await Secret({"metadata": {"name": "s", "namespace": namespace}, "stringData": {"k": "v"}})
    await secret.create()
    await secret.refresh()
    step("secret", secret.data == {"k": "dg=="})
    spec = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
    deployment = await Deployment({"metadata": {"name": "web", "namespace": namespace}, "spec": spec})
    await deployment.create()
    # scale() goes on to wait for pods, which nothing makes here.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(deployment.scale(2), 1)
    await deployment.refresh()
    step("scale", deployment.spec.replicas == 2)
    await watched(api, namespace)
    await custom(namespace)
    await space.delete()
    step("done")


async def watched(api: kr8s.Api, namespace: str) -> None:
    seen, is_added = [], asyncio.Event()

    async def follow() -> None:
        async for kind, item in api.watch("configmaps", namespace=namespace):
            if item.name != "seen":
                continue
            seen.append(kind)
            is_added.set()
            if kind == "DELETED":
                return

    task = asyncio.create_task(follow())
    seen_map = await ConfigMap({"metadata": {"name": "seen", "namespace": namespace}})
    await seen_map.create()
    await asyncio.wait_for(is_added.wait(), 20)
    await seen_map.patch({"data": {"a": "1"}})
    await seen_map.delete()
    await asyncio.wait_for(task, 20)
    step("watch", seen == ["ADDED", "MODIFIED", "DELETED"])
    await seen_map.wait("delete", timeout=20)
    step("wait for deletion")


async def custom(namespace: str) -> None:
    definition = new_class("CustomResourceDefinition", "apiextensions.k8s.io/v1", namespaced=False)
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    group = "kr8s.test.ironbell.dev"
    made = await definition(
        {
            "metadata": {"name": f"nuts.{group}"},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"kind": "Nut", "plural": "nuts"},
                "versions": [{
                    "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}},
                }],
            },
        }
    )  # fmt: skip
    await made.create()
    # kr8s takes conditions for a list, and kube-apiserver begins with null
    async with asyncio.timeout(20):
        while not made.raw.get("status", {}).get("conditions"):
            await made.refresh()
    await made.wait("condition=Established", timeout=20)
    step("wait for a condition")
    nut = new_class("Nut", f"{group}/v1", namespaced=True)
    one = await nut({"metadata": {"name": "one", "namespace": namespace}, "spec": {"size": 8}})
    await one.create()
    await one.patch({"status": {"turned": True}}, subresource="status")
    await one.refresh()
    step("custom object", one.spec.size == 8 and one.status.turned)
    await made.delete()


asyncio.run(main())
