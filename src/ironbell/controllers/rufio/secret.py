"""Secrets of BMCs: watched for changes without their contents, and read when they are used.

The model has no data, so that informers, observed values and logs cannot hold secrets. Credentials are read from the
API when a session is opened, and only that session keeps them.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass, field

import msgspec

from ironbell.api.bmc.connection import Connection, SecretReference
from ironbell.api.client import Api, NotFound
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.tinkerbell.names import SECRET_KEY_PASSWORD, SECRET_KEY_USERNAME
from ironbell.bmc.driver import CredentialsError
from ironbell.controllers.rufio.names import SECRET_KEY_CA
from ironbell.kube.decision import Key


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of a BMC. Their text form hides everything."""

    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    ca_certificate: str = field(default="", repr=False)
    """PEM; empty for the authorities of the operating system."""


class _Contents(msgspec.Struct, gc=False):
    data: dict[str, str] = {}


_decoder = msgspec.json.Decoder(_Contents)


def references(connection: Connection, namespace: str) -> list[Key]:
    """Keys of the Secrets that a connection depends on. `namespace` is for references without a namespace."""
    secrets: list[SecretReference] = [connection.auth_secret_ref] if connection.auth_secret_ref else []
    rpc = connection.provider_options.rpc if connection.provider_options else None
    if rpc is not None and rpc.hmac is not None:
        secrets += [secret for several in rpc.hmac.secrets.values() for secret in several]
    return [(secret.namespace or namespace, secret.name) for secret in secrets if secret.name]


async def read_credentials(api: Api, connection: Connection, namespace: str) -> Credentials:
    """Read the Secret that the connection names; without one, the credentials are empty.

    Raises:
        CredentialsError: the Secret does not exist, or lacks keys.
    """
    reference = connection.auth_secret_ref
    if reference is None or not reference.name:
        return Credentials()
    where = (reference.namespace or namespace, reference.name)
    try:
        contents = _decoder.decode(await api.get(SECRET_METADATA.collection, *where)).data
    except NotFound:
        message = f"secret {where[0]}/{where[1]} of spec.connection.authSecretRef does not exist; create it"
        raise CredentialsError(message) from None
    missing = [key for key in (SECRET_KEY_USERNAME, SECRET_KEY_PASSWORD) if key not in contents]
    if missing:
        message = f"secret {where[0]}/{where[1]} lacks the key {' and '.join(missing)}"
        raise CredentialsError(message)
    return Credentials(
        _text(contents, SECRET_KEY_USERNAME, where),
        _text(contents, SECRET_KEY_PASSWORD, where),
        _text(contents, SECRET_KEY_CA, where) if SECRET_KEY_CA in contents else "",
    )


def _text(contents: dict[str, str], key: str, where: Key) -> str:
    try:
        return b64decode(contents[key], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        message = f"secret {where[0]}/{where[1]}: the value of {key} is not valid base64 of UTF-8 text"
        raise CredentialsError(message) from None
