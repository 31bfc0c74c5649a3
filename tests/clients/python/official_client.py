"""Uses a Kubernetes API through `kubernetes`, the official client. Prints a line for each step that holds."""

import threading
import time
import uuid

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException

GROUP = "official.test.ironbell.dev"


def step(name: str, holds: object = True) -> None:
    assert holds, name
    print(name, flush=True)


def refused(call: object, *arguments: object, **options: object) -> ApiException:
    try:
        call(*arguments, **options)
    except ApiException as error:
        return error
    raise AssertionError(f"{call} should have been refused")


def typed(core: client.CoreV1Api, namespace: str) -> None:
    made = core.create_namespaced_config_map(
        namespace, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="one", labels={"a": "b"}), data={"k": "v"})
    )
    step("create", made.metadata.uid and made.metadata.creation_timestamp.tzinfo)
    listed = core.list_namespaced_config_map(namespace, label_selector="a=b")
    step("list by label", [item.metadata.name for item in listed.items] == ["one"])
    step(
        "list of all namespaces",
        any(item.metadata.uid == made.metadata.uid for item in core.list_config_map_for_all_namespaces().items),
    )
    patched = core.patch_namespaced_config_map("one", namespace, {"data": {"x": "y"}})
    step("strategic patch", patched.data == {"k": "v", "x": "y"})
    made.data = {"k": "old"}
    step("an old version conflicts", refused(core.replace_namespaced_config_map, "one", namespace, made).status == 409)
    missing = refused(core.read_namespaced_config_map, "none", namespace)
    step("a missing object is not found", missing.status == 404 and '"reason":"NotFound"' in missing.body)
    for number in range(5):
        core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata={"name": f"page-{number}"}))
    names, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    step("pages", [name for name in names if name.startswith("page-")] == [f"page-{number}" for number in range(5)])
    secret = core.create_namespaced_secret(
        namespace, client.V1Secret(metadata={"name": "s"}, string_data={"password": "secret"})
    )
    step("secret", secret.data == {"password": "c2VjcmV0"} and secret.type == "Opaque")
    node = core.create_node(client.V1Node(metadata=client.V1ObjectMeta(generate_name="official-")))
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    node = core.patch_node_status(node.metadata.name, ready)
    step("node status", node.status.conditions[0].type == "Ready")
    core.delete_node(node.metadata.name)


def watched(core: client.CoreV1Api, namespace: str) -> None:
    version = core.list_namespaced_config_map(namespace).metadata.resource_version

    def change() -> None:
        core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata={"name": "seen"}))
        core.patch_namespaced_config_map("seen", namespace, {"data": {"a": "1"}})
        core.delete_namespaced_config_map("seen", namespace)

    thread = threading.Thread(target=change)
    thread.start()
    stream = watch.Watch()
    seen = []
    for event in stream.stream(
        core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=20
    ):
        if event["object"].metadata.name == "seen":
            seen.append((event["type"], event["object"].data))
        if event["type"] == "DELETED":
            stream.stop()
    thread.join()
    step("watch", seen == [("ADDED", None), ("MODIFIED", {"a": "1"}), ("DELETED", {"a": "1"})])


def applied(api: client.ApiClient, namespace: str) -> None:
    dynamic_client = dynamic.DynamicClient(api)
    maps = dynamic_client.resources.get(api_version="v1", kind="ConfigMap")
    step("dynamic discovery", maps.namespaced and "patch" in maps.verbs)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
    made = maps.server_side_apply(body, namespace=namespace, field_manager="official")
    step("server-side apply", made.metadata.managedFields[0].manager == "official")
    try:
        maps.server_side_apply(body | {"data": {"a": "2"}}, namespace=namespace, field_manager="other")
    except dynamic.exceptions.ConflictError:
        step("apply conflicts")
    step("dynamic list", maps.get(namespace=namespace, name="applied").data.a == "1")
    deployment = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    }  # fmt: skip
    utils.create_from_dict(api, deployment, namespace=namespace)
    apps = client.AppsV1Api(api)
    step("create from a manifest", apps.read_namespaced_deployment("web", namespace).spec.replicas == 1)
    scale = apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}})
    step("scale", scale.spec.replicas == 3)


def custom(api: client.ApiClient, namespace: str) -> None:
    extensions, objects = client.ApiextensionsV1Api(api), client.CustomObjectsApi(api)
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}}
    name = f"pins.{GROUP}"
    extensions.create_custom_resource_definition(
        {
            "metadata": {"name": name},
            "spec": {
                "group": GROUP, "scope": "Namespaced", "names": {"kind": "Pin", "plural": "pins"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
            },
        }
    )  # fmt: skip
    deadline = time.monotonic() + 20
    while True:
        conditions = extensions.read_custom_resource_definition(name).status.conditions or []
        if any(condition.type == "Established" and condition.status == "True" for condition in conditions):
            break
        assert time.monotonic() < deadline, "definition is not established"
    step("definition")
    pin = {"apiVersion": f"{GROUP}/v1", "kind": "Pin", "metadata": {"name": "one"}, "spec": {"n": 1}}
    objects.create_namespaced_custom_object(GROUP, "v1", namespace, "pins", pin)
    patched = objects.patch_namespaced_custom_object(GROUP, "v1", namespace, "pins", "one", {"spec": {"n": 2}})
    step("custom object", patched["spec"] == {"n": 2})
    wrong = refused(
        objects.patch_namespaced_custom_object, GROUP, "v1", namespace, "pins", "one", {"spec": {"n": "many"}}
    )
    step("a wrong type is invalid", wrong.status == 422)
    step("list of custom objects", len(objects.list_cluster_custom_object(GROUP, "v1", "pins")["items"]) == 1)
    extensions.delete_custom_resource_definition(name)


def main() -> None:
    config.load_kube_config()
    api = client.ApiClient()
    core = client.CoreV1Api(api)
    step("version", client.VersionApi(api).get_code().major == "1")
    namespace = f"official-{uuid.uuid4().hex[:8]}"
    core.create_namespace(client.V1Namespace(metadata={"name": namespace}))
    typed(core, namespace)
    watched(core, namespace)
    applied(api, namespace)
    custom(api, namespace)
    leases = client.CoordinationV1Api(api)
    lease = leases.create_namespaced_lease(
        namespace,
        {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.000001Z"}},
    )
    step("microseconds", lease.spec.renew_time.microsecond == 1)
    review = client.AuthorizationV1Api(api).create_self_subject_access_review(
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets"}}}
    )
    step("access review", review.status.allowed)
    core.delete_namespace(namespace)
    step("done")


main()
