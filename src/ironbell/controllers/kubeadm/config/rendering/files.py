"""Files, users and discovery of a KubeadmConfig, with the contents of the Secrets that they refer to.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/{kubeadmconfig_controller,template}.go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec import gotemplate, goyaml
from ironbell.codec.gotemplate.builtins import BUILTINS
from ironbell.codec.gotemplate.errors import BRIEF_SECONDS, BRIEF_STEPS
from ironbell.codec.gotemplate.meter import metered
from ironbell.contract import pki
from ironbell.contract.clusters.versions import parse_version
from ironbell.controllers.kubeadm.config.rendering.kubeadm import Spec
from ironbell.controllers.kubeadm.config.rendering.userdata import Part, Role, WriteFile
from ironbell.kube.decision import Fields

TEMPLATE: Final = "Template"
RENDERED_BYTES: Final = 1 << 20
EXEC_API: Final = "client.authentication.k8s.io/v1"

Contents: TypeAlias = Mapping[str, Mapping[str, bytes]]
"""Contents by the name of a Secret in the KubeadmConfig's namespace, and by key."""


class FileError(IronbellError):
    """A file or user in the spec is not valid. The message names the field, and never contains a value."""

    reason, retry = "FileUnusable", Retry.BACKOFF


def secret_names(spec: Spec) -> frozenset[str]:
    """Return the names of the Secrets that files and users refer to."""
    return frozenset(reference["name"] for _, reference in _references(spec) if reference.get("name"))


def has_templates(spec: Spec) -> bool:
    """Return whether files need the control plane's version."""
    return any(file.get("contentFormat") == TEMPLATE for file in spec.get("files", ()))


def resolved_files(spec: Spec, contents: Contents, control_plane_version: str) -> list[WriteFile]:
    """Return the files with their contents.

    Args:
        spec: the whole spec.
        contents: the contents of the Secrets that files refer to.
        control_plane_version: the version for templates; empty if it is not known.

    Raises:
        FileError: a Secret lacks a key, a value is not text, or a template does not render.
    """
    data = _template_data(control_plane_version) if has_templates(spec) else {}
    with metered(BRIEF_STEPS, BRIEF_SECONDS):
        return [_resolved(number, file, contents, data) for number, file in enumerate(spec.get("files", ()))]


def resolved_users(spec: Spec, contents: Contents) -> list[Part]:
    """Return the users with their passwords.

    Raises:
        FileError: a Secret lacks a key, or a value is not text.
    """
    users: list[Part] = []
    for number, user in enumerate(spec.get("users", ())):
        reference = user.get("passwdFrom", {}).get("secret")
        if reference:
            password = _content(f"spec.users[{number}].passwdFrom.secret", reference, contents)
            user = {name: value for name, value in user.items() if name != "passwdFrom"} | {"passwd": password}
        users.append(user)
    return users


def plain_file(file: Part) -> WriteFile:
    """Return a file whose content is in the spec."""
    return WriteFile(
        file.get("path", ""),
        file.get("content", ""),
        owner=file.get("owner", ""),
        permissions=file.get("permissions", ""),
        encoding=file.get("encoding", ""),
        append=file.get("append"),
    )


def discovery_file(spec: Spec) -> list[WriteFile]:
    """Return the kubeconfig by which a machine finds its cluster, if the spec has one.

    Raises:
        FileError: the authority's data is not base64 of text.
    """
    file: Spec = spec.get("joinConfiguration", {}).get("discovery", {}).get("file", {})
    kubeconfig: Spec = file.get("kubeConfig", {})
    if not kubeconfig:
        return []
    given: Spec = kubeconfig.get("cluster", {})
    cluster: Fields = {"server": given.get("server", "")}
    for name, field in _CLUSTER_FIELDS:
        if given.get(field):
            cluster[name] = given[field]
    document = {
        "clusters": [{"name": "default", "cluster": cluster}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
        "users": [{"name": "default", "user": _discovery_user(kubeconfig.get("user", {}))}],
    }
    text = goyaml.dump(document, go_exact=True)
    return [WriteFile(file.get("kubeConfigPath", ""), text, owner="root:root", permissions="0640")]


_CLUSTER_FIELDS: Final = (
    ("tls-server-name", "tlsServerName"),
    ("insecure-skip-tls-verify", "insecureSkipTLSVerify"),
    ("certificate-authority-data", "certificateAuthorityData"),
    ("proxy-url", "proxyURL"),
)


def _discovery_user(user: Spec) -> Fields:
    fields: Fields = {}
    if provider := user.get("authProvider"):
        fields["auth-provider"] = {"name": provider.get("name", ""), "config": provider.get("config")}
    if given := user.get("exec"):
        environment = [{"name": env.get("name", ""), "value": env.get("value", "")} for env in given.get("env", ())]
        fields["exec"] = {
            "apiVersion": given.get("apiVersion") or EXEC_API,
            "args": given.get("args"),
            "command": given.get("command", ""),
            "env": environment or None,
            "interactiveMode": "Never",
            "provideClusterInfo": bool(given.get("provideClusterInfo")),
        }
    return fields


def _references(spec: Spec) -> Iterator[tuple[str, Spec]]:
    for section, field in (("files", "contentFrom"), ("users", "passwdFrom")):
        for number, item in enumerate(spec.get(section, ())):
            if reference := item.get(field, {}).get("secret"):
                yield f"spec.{section}[{number}].{field}.secret", reference


def missing_references(spec: Spec, existing: frozenset[str]) -> Sequence[str]:
    """Return the problems of references to Secrets that do not exist."""
    return [
        f"{field} names Secret {reference.get('name', '')}, which does not exist; create it"
        for field, reference in _references(spec)
        if reference.get("name", "") not in existing
    ]


def _resolved(number: int, file: Part, contents: Contents, data: Fields) -> WriteFile:
    reference = file.get("contentFrom", {}).get("secret")
    if reference:
        file = {**file, "content": _content(f"spec.files[{number}].contentFrom.secret", reference, contents)}
    if file.get("contentFormat") != TEMPLATE:
        return plain_file(file)
    try:
        text = gotemplate.render(file.get("content", ""), data, functions=BUILTINS, output_cap=RENDERED_BYTES)
    except gotemplate.TemplateError as error:
        raise FileError(f"spec.files[{number}] ({file.get('path', '')}): {error}") from None
    return plain_file({**file, "content": text})


def _content(field: str, reference: Spec, contents: Contents) -> str:
    name, key = reference.get("name", ""), reference.get("key", "")
    if name not in contents:
        raise FileError(f"{field} names Secret {name}, which does not exist; create it")
    if key not in contents[name]:
        raise FileError(f"{field} names key {key!r}, which Secret {name} does not have; add it")
    try:
        return contents[name][key].decode()
    except UnicodeDecodeError:
        raise FileError(f"{field}: key {key!r} of Secret {name} is not UTF-8 text; encode it") from None


def _template_data(version: str) -> Fields:
    if not version:
        return {"controlPlane": None}
    return {"controlPlane": {"version": f"v{parse_version(version)}"}}


def decoded(data: Mapping[str, str], secret: str) -> dict[str, bytes]:
    """Decode the values of a Secret.

    Raises:
        FileError: a value is not valid base64.
    """
    try:
        return {key: base64.b64decode(value, validate=True) for key, value in data.items()}
    except binascii.Error:
        raise FileError(f"Secret {secret} holds a value that is not valid base64") from None


def discovery_patch(spec: Spec, role: Role, endpoint: str, authority: bytes, token: str) -> Fields:
    """Return the patch that completes a spec's discovery, by token or kubeconfig; empty if it is complete.

    Fields that the user has set are kept. The others are written into the spec, as upstream does, so that they are
    visible, and stay the same when data are rendered again.

    Args:
        spec: the current spec.
        role: the machine's role.
        endpoint: `host:port` of the control plane.
        authority: the cluster's certificates, in PEM.
        token: the token for a spec without one; a pool's new token replaces the old one.

    Raises:
        PkiError: the certificates cannot be read.
    """
    join: Spec = spec.get("joinConfiguration", {})
    discovery: Spec = join.get("discovery", {})
    change: Fields = {}
    file = _file(discovery.get("file", {}), endpoint, authority)
    if file is not None:
        if file:
            change["discovery"] = {"file": {"kubeConfig": {"cluster": file}}}
    elif missing := _token(discovery.get("bootstrapToken", {}), endpoint, authority, token):
        change["discovery"] = {"bootstrapToken": missing}
    if role is Role.CONTROL_PLANE and join.get("controlPlane") is None:
        change["controlPlane"] = {}
    return {"spec": {"joinConfiguration": change}} if change else {}


def _file(file: Spec, endpoint: str, authority: bytes) -> Fields | None:
    """Return the missing fields of a kubeconfig; None if the discovery is not by file."""
    if not file:
        return None
    kubeconfig: Spec = file.get("kubeConfig", {})
    if not kubeconfig:
        return {}
    cluster: Spec = kubeconfig.get("cluster", {})
    missing: Fields = {}
    if not cluster.get("server"):
        missing["server"] = f"https://{endpoint}"
    if not cluster.get("certificateAuthorityData"):
        missing["certificateAuthorityData"] = base64.b64encode(authority).decode()
    return missing


def _token(given: Spec, endpoint: str, authority: bytes, token: str) -> Fields:
    missing: Fields = {}
    if not given.get("caCertHashes"):
        missing["caCertHashes"] = pki.certificate_hashes(authority)
    if not given.get("apiServerEndpoint"):
        missing["apiServerEndpoint"] = endpoint
    if token and given.get("token") != token:
        missing["token"] = token
    return missing
