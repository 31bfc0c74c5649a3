"""Turn a cluster template into objects. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.envsubst import substitute
from ironbell.codec.goyaml import YamlError, load_all
from ironbell.contract.clusters.versions import find_version
from ironbell.operations.discovered import Object

LAST_KIND = "Cluster"


class TemplateError(IronbellError):
    """A template whose result is not a list of objects."""

    reason, retry = "InvalidTemplate", Retry.NEVER


def built_in(
    name: str, namespace: str, *, kubernetes_version: str | None, control_planes: int | None, workers: int | None
) -> dict[str, str]:
    """The variables that options of `create` set.

    Raises:
        TemplateError: the Kubernetes version is not a version.
    """
    if kubernetes_version is not None and find_version(kubernetes_version) is None:
        raise TemplateError(f"--kubernetes-version: {kubernetes_version!r} is not a valid version; write it as v1.34.2")
    variables = {
        "CLUSTER_NAME": name,
        "NAMESPACE": namespace,
        "KUBERNETES_VERSION": kubernetes_version,
        "CONTROL_PLANE_MACHINE_COUNT": None if control_planes is None else str(control_planes),
        "WORKER_MACHINE_COUNT": None if workers is None else str(workers),
    }
    return {variable: value for variable, value in variables.items() if value is not None}


def check_names(given: Collection[str], known: Collection[str], *, source: str) -> None:
    """Check that the template uses all given variables.

    Raises:
        TemplateError: a variable was given that the template does not use.
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f'Did you mean "{near[0]}"? ' if near else ""
            raise TemplateError(
                f'--set: {source} has no variable "{name}". {meant}--list-variables lists its variables.'
            )


def objects_of(text: str, values: Mapping[str, str], *, source: str) -> list[Object]:
    """The objects of a template, Clusters last, so that the objects they refer to exist first.

    Raises:
        MissingVariablesError: naming all variables without a value.
        SubstitutionError: a variable is malformed.
        TemplateError: the result is not valid YAML, or a document of it is not an object.
    """
    try:
        documents = [document for document in load_all(substitute(text, values).encode()) if document is not None]
    except YamlError as error:
        raise TemplateError(f"{source}, with its variables replaced: {error}") from None
    for number, document in enumerate(documents, 1):
        missing = [name for name in ("apiVersion", "kind") if not isinstance(document, dict) or not document.get(name)]
        metadata = document.get("metadata") if isinstance(document, dict) else None
        if not isinstance(metadata, dict) or not metadata.get("name"):
            missing.append("metadata.name")
        if missing:
            raise TemplateError(f"{source}, document {number}: has no {', '.join(missing)}")
    if not documents:
        raise TemplateError(f"{source}: contains no objects")
    return sorted(documents, key=lambda document: document["kind"] == LAST_KIND)
