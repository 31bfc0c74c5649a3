"""What the provider does with the contents of Secrets: bootstrap data goes to the metadata service's Hardware.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/{scope,hardware}.go.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Sequence

import msgspec

from ironbell.api.client import Api, NotFound
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.tinkerbell import HARDWARE
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.servers.claim import USER_DATA_OF
from ironbell.kube.decision import Action, MergePatch
from ironbell.kube.reconciler import Performers
from ironbell.provisioner.lifecycle.installing import GIVE_USER_DATA, GiveUserData
from ironbell.provisioner.lifecycle.names import PLACEHOLDER

KEY = "value"


class BootstrapDataError(IronbellError):
    """A Secret has no bootstrap data."""

    reason = "NoBootstrapData"
    retry = Retry.BACKOFF


class _Contents(msgspec.Struct, gc=False):
    data: dict[str, str] = {}


_decoder = msgspec.json.Decoder(_Contents)


def performers(api: Api) -> Performers:
    """By name; `api` is that of an identity that may read Secrets."""

    async def give(arguments: GiveUserData) -> Sequence[Action]:
        text = await read_bootstrap_data(api, *arguments.secret)
        body = {
            "metadata": {"annotations": {USER_DATA_OF: arguments.marked_as}},
            "spec": {"userData": text.replace(PLACEHOLDER, arguments.provider_id)},
        }
        return [MergePatch(HARDWARE, *arguments.hardware, body, resource_version=arguments.resource_version)]

    return {GIVE_USER_DATA: give}


async def read_bootstrap_data(api: Api, namespace: str, name: str) -> str:
    """The text under `value`.

    Raises:
        BootstrapDataError: there is no such Secret, key or text.
        ApiError: the API does not answer.
    """
    where = f"Secret {namespace}/{name}"
    try:
        body = await api.get(SECRET_METADATA.collection, namespace, name)
    except NotFound as error:
        raise BootstrapDataError(f"{where} does not exist") from error
    try:
        text = b64decode(_decoder.decode(body).data.get(KEY, ""), validate=True).decode()
    except (msgspec.MsgspecError, binascii.Error, UnicodeDecodeError) as error:
        raise BootstrapDataError(f"{where}: the value of key {KEY} is not valid base64") from error
    if not text:
        raise BootstrapDataError(f"{where}: key {KEY} is missing or empty")
    return text
