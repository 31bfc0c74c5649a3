"""What running sites serve: definitions, discovery, roles and what each account may do, webhooks, metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping

import urllib3

from surface.checkout import Checkout, CheckoutError
from surface.exposition import documented, families, label_values, lines
from surface.manifests import CONTROLLERS, SERVERS
from surface.masks import document
from surface.reference import metrics_page
from surface.site import Site, free_ports, settled, site

_RBAC, _ADMISSION = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_COLLECTIONS = {
    "definitions": {"CustomResourceDefinition": _DEFINITIONS},
    "roles": {
        "ClusterRole": f"{_RBAC}/clusterroles",
        "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
        "Role": f"{_RBAC}/roles",
        "RoleBinding": f"{_RBAC}/rolebindings",
        "ServiceAccount": "/api/v1/serviceaccounts",
    },
    "webhooks": {
        "MutatingWebhookConfiguration": f"{_ADMISSION}/mutatingwebhookconfigurations",
        "ValidatingWebhookConfiguration": f"{_ADMISSION}/validatingwebhookconfigurations",
        "ValidatingAdmissionPolicy": f"{_ADMISSION}/validatingadmissionpolicies",
        "ValidatingAdmissionPolicyBinding": f"{_ADMISSION}/validatingadmissionpolicybindings",
        "Provider": "/apis/clusterctl.cluster.x-k8s.io/v1alpha3/providers",
    },
}
_LEASES = "/apis/coordination.k8s.io/v1/leases"
_ACCOUNT = "system:serviceaccount:"
_ACCOUNTS = (
    "ironbell-boot", "ironbell-workflow", "ironbell-wire", "ironbell-controllers", "rufio-access", "workload-access",
    "capt-bootstrap-data",
)  # fmt: skip
"""Accounts of the embedded API that are not those of controllers, in the namespace `ironbell-system`."""
_RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_CONTROLLERS = ("controller_runtime_max_concurrent_reconciles", "controller")
"""A metric that has a sample for each controller as soon as it runs, and the label that names the controller."""


def live(checkout: Checkout) -> dict[str, str]:
    """All parts of all sites: one with a simulated server, one without, one without each component, and one on which
    Ironbell is installed as on a cluster."""
    files = _simulated(checkout) | _plain(checkout) | _installed(checkout)
    for component in CONTROLLERS:
        files |= _without(checkout, component)
    return files


def _simulated(checkout: Checkout) -> dict[str, str]:
    with site(checkout, "--simulate", "1", servers=True) as running:
        _await_definitions(running)
        files = _objects(running, "simulated") | discovery(running, "simulated") | schemas(running, "simulated")
        files |= rights(running, "simulated")
        ports = {"boot": running.ports["http-port"], "workflow": running.ports["workflow-http-port"]}
        return files | settled(lambda: metrics(checkout, _exposed(ports) | {"core": running.metrics()}))


def _plain(checkout: Checkout) -> dict[str, str]:
    with site(checkout) as running:
        _await_definitions(running)
        return _objects(running, "plain") | discovery(running, "plain")


def _without(checkout: Checkout, component: str) -> dict[str, str]:
    name = f"without-{component}"
    with site(checkout, "--without", component) as running:
        _await_definitions(running)
        files = _objects(running, name, only=("definitions", "roles"))
        return files | discovery(running, name) | rights(running, name)


def _installed(checkout: Checkout) -> dict[str, str]:
    """A site without any controllers, on which all components are installed, and then run outside of any pod."""
    without = [word for component in CONTROLLERS for word in ("--without", component)]
    words = ["install", "--components", ",".join((*CONTROLLERS, *SERVERS)), "--without-pods", "--force-conflicts"]
    with site(checkout, *without) as running:
        _await_definitions(running)
        printed = checkout.printed(*words, "--kubeconfig", str(running.kubeconfig))
        files = {"install/applied.txt": "".join(f"{line}\n" for line in sorted(printed.splitlines()))}
        return files | _objects(running, "installed") | rights(running, "installed") | _components(running)


def _components(running: Site) -> dict[str, str]:
    """Metrics and Leases of the processes of `ironbell run`: of all components together, and of those with webhooks."""
    (running.folder / "run").mkdir()
    options = ("http-port", "grpc-port", "tftp-port", "metadata-port")
    words = [f"--{option}={port}" for option, port in zip(options, free_ports(len(options)), strict=True)]
    words += ["--dhcp=off", "--interface=lo", "--advertise=127.0.0.1", f"--data-dir={running.folder / 'run'}"]
    names = ("run-boot", "run-workflow", "run-controllers")
    with running.running("controllers", *SERVERS, processes=len(names), arguments=words) as ports:

        def look() -> dict[str, str]:
            leases = {
                "installed/leases.txt": "".join(f"{item['metadata']['name']}\n" for item in running.items(_LEASES))
            }
            return leases | metrics(running.checkout, _exposed(dict(zip(names, ports, strict=True))))

        files = settled(look)
    words = [f"--webhook-address=127.0.0.1:{free_ports(1)[0]}", "--webhook-host=localhost", "--no-leader-elect"]
    with running.running("tink-controller", "cluster-api", arguments=words) as (port,):
        return files | settled(lambda: metrics(running.checkout, _exposed({"run-webhooks": port})))


def metrics(checkout: Checkout, texts: Mapping[str, str]) -> dict[str, str]:
    """A file `metrics/PROCESS.txt` for each process, and one with the names of its controllers."""
    page = documented(metrics_page(checkout))
    files: dict[str, str] = {}
    for process, text in texts.items():
        files[f"metrics/{process}.txt"] = "".join(f"{line}\n" for line in lines(families(text), page))
        files[f"metrics/{process}-controllers.txt"] = "".join(f"{name}\n" for name in _controllers(text))
    return files


def _controllers(text: str) -> list[str]:
    return sorted(label_values(text, *_CONTROLLERS))


def _exposed(ports: Mapping[str, int]) -> dict[str, str]:
    return {process: _text(f"http://127.0.0.1:{port}/metrics") for process, port in ports.items()}


def _objects(running: Site, name: str, *, only: tuple[str, ...] = tuple(_COLLECTIONS)) -> dict[str, str]:
    """A file `PART/SITE/KIND/NAME.json` for each object of the collections."""

    def look() -> dict[str, str]:
        return {
            f"{part}/{name}/{kind}/{_file_of(item)}.json": document(item)
            for part in only
            for kind, path in _COLLECTIONS[part].items()
            for item in running.items(path)
        }

    return settled(look)


def _file_of(item: dict[str, dict[str, str]]) -> str:
    namespace = item["metadata"].get("namespace")
    return f"{namespace}.{item['metadata']['name']}" if namespace else item["metadata"]["name"]


def discovery(running: Site, name: str) -> dict[str, str]:
    """Discovery documents of the API, in both forms."""
    prefix = f"discovery/{name}"
    groups = running.get("/apis")["groups"]
    paths = ["/", "/api", "/api/v1", "/apis", "/version", "/openapi/v3"]
    paths += [f"/apis/{group['name']}" for group in groups]
    paths += [f"/apis/{version['groupVersion']}" for group in groups for version in group["versions"]]
    files = {f"{prefix}/{path.strip('/').replace('/', '_') or 'root'}.json": running.get(path) for path in paths}
    for path in ("/api", "/apis"):
        files[f"{prefix}/aggregated{path.replace('/', '_')}.json"] = running.get(path, Accept=_AGGREGATED)
    return {file: document(value) for file, value in files.items()}


def schemas(running: Site, name: str) -> dict[str, str]:
    """The OpenAPI documents of the API, of version 3 for each group, and of version 2."""
    paths = running.get("/openapi/v3")["paths"]
    files = {
        f"schemas/{name}/{path.replace('/', '_')}.json": running.get(entry["serverRelativeURL"])
        for path, entry in paths.items()
    }
    files[f"schemas/{name}/v2.json"] = running.get("/openapi/v2")
    return {file: document(value) for file, value in files.items()}


def rights(running: Site, name: str) -> dict[str, str]:
    """A file `rights/SITE/ACCOUNT.json` with the rules that the API says to hold for each account of Ironbell."""
    users = {f"ironbell-system:{account}" for account in (*_ACCOUNTS, *_controllers(running.metrics()))}
    for binding in [*running.items(f"{_RBAC}/clusterrolebindings"), *running.items(f"{_RBAC}/rolebindings")]:
        for subject in binding.get("subjects", []):
            if subject["kind"] == "ServiceAccount":
                users.add(f"{subject['namespace']}:{subject['name']}")
    files: dict[str, str] = {}
    for user in sorted(users):
        namespace = user.partition(":")[0]
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
        answer = running.request(
            _RULES,
            body=body | {"spec": {"namespace": namespace}},
            Impersonate_User=f"{_ACCOUNT}{user}",
            Impersonate_Group="system:authenticated",
        )
        files[f"rights/{name}/{user.replace(':', '.')}.json"] = document(json.loads(answer)["status"])
    return files


def _await_definitions(running: Site) -> None:
    """Wait until the definitions are served: they are created after the API has begun to answer."""

    def look() -> dict[str, str]:
        return {item["metadata"]["name"]: "" for item in running.items(_DEFINITIONS)}

    settled(look)


def _text(url: str) -> str:
    try:
        answer = urllib3.request("GET", url, timeout=30.0, retries=False)
    except urllib3.exceptions.HTTPError as error:
        raise CheckoutError(f"{url}: {error}") from error
    if answer.status != 200:
        raise CheckoutError(f"{url}: {answer.status} {answer.data[:500]!r}")
    return answer.data.decode()
