"""Names of the objects of a topology: from naming templates, with a random-looking part that follows from the Cluster.

Source: kubernetes-sigs/cluster-api: internal/topology/names/names.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.contract.clusters.name_templates import NameTemplateError, generated_name, render_name, suffix
from ironbell.contract.hashing import stable_hash
from ironbell.controllers.capi.topology.desired.model import TopologyError

CLUSTER_OBJECT: Final = "{{ .cluster.name }}-{{ .random }}"
MACHINE_DEPLOYMENT: Final = "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}"
MACHINE_POOL: Final = "{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}"


def named(template: str, cluster: Cluster, role: str, variables: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """The name of an object that is created once: the same for the same Cluster and role.

    Raises:
        TopologyError: the naming template does not render a name.
    """
    try:
        return render_name(template, cluster.metadata.name, suffix(cluster.metadata.uid, role), variables or {})
    except NameTemplateError as error:
        raise TopologyError(error.message) from error


def template_name(prefix: str, cluster: Cluster, role: str, spec: Any, replaced: str = "") -> str:
    """The name of a template, or of an object named like one.

    It follows from the content and from the template that it replaces. A repeated decision therefore names the object
    that already exists, and content that returns does not get the name that it had earlier.
    """
    return generated_name(prefix, cluster.metadata.uid, role, stable_hash(spec), replaced)
