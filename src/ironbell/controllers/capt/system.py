"""The Tinkerbell provider of Cluster API as a system."""

from __future__ import annotations

from typing import Final

from ironbell.contract.system import Definitions, Lazy, Option, Provider, SecretMount, System

_CONTROLLERS: Final = "ironbell.controllers.capt.controllers"
_GROUP: Final = "infrastructure.cluster.x-k8s.io"
_FOLDER: Final = "/var/run/secrets/external-tinkerbell"

SYSTEMS: Final = (
    System(
        "capt",
        "TinkerbellClusters and TinkerbellMachines: claims servers for Machines, installs and wipes them.",
        (Lazy("ironbell.api.capt", "KINDS"),),
        Lazy(_CONTROLLERS, "PERMISSIONS"),
        Lazy(_CONTROLLERS, "create_controllers"),
        aliases=("cluster-api-tinkerbell", "infrastructure-tinkerbell"),
        definitions=Definitions.WITH_WEBHOOKS,
        admission=Lazy("ironbell.controllers.capt.admission", "ADMISSION"),
        admitted=frozenset(
            f"{plural}.{_GROUP}"
            for plural in (
                "tinkerbellclusters",
                "tinkerbellclustertemplates",
                "tinkerbellmachines",
                "tinkerbellmachinetemplates",
            )
        ),
        webhooks_of="cluster-api",
        provider=Provider("infrastructure-tinkerbell", "tinkerbell", "InfrastructureProvider", "v0.7.0"),
        options=(
            Option(
                "--metadata-url",
                "metadata_url",
                "capt: address at which machines reach the metadata service, such as http://192.0.2.1:7080.",
                metavar="URL",
            ),
            Option(
                "--node-images-url",
                "node_images_url",
                "capt: address at which machines find node images, such as http://192.0.2.1:7080/images.",
                metavar="URL",
            ),
            Option(
                "--installs-per-rack",
                "installs_per_rack",
                "capt: maximum number of servers in a rack that are installed at the same time; 0: no limit.",
                type="count",
                default=16,
                show_default=True,
            ),
            Option(
                "--external-kubeconfig",
                "external_kubeconfig",
                "capt: kubeconfig of another cluster that keeps Hardware, Templates, Workflows and BMC Jobs; without "
                "the file, this cluster keeps them.",
                type="file",
                default=f"{_FOLDER}/kubeconfig",
                environment="EXTERNAL_KUBECONFIG",
                show_default=True,
            ),
        ),
        read_settings=Lazy("ironbell.controllers.capt.external", "read_settings"),
        view=Lazy("ironbell.controllers.capt.external", "api_with_servers"),
        mounts=(SecretMount("external-tinkerbell", "external-tinkerbell-kubeconfig", _FOLDER),),
    ),
)
