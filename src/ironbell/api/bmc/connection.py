"""Connection to a BMC: address, credentials and the options of each driver.

Source: tinkerbell/tinkerbell: api/v1alpha1/bmc/machine.go and provider_opts.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import field

from ironbell.api.crd.markers import Int32, Schema, required
from ironbell.api.meta import Model
from ironbell.base.ports import IPMI_PORT


class HostScheme(StrEnum):
    """Values of `intelAMT.hostScheme`."""

    HTTP = "http"
    HTTPS = "https"


class SecretReference(Model, frozen=True):
    """A Secret by name and namespace."""

    schema_: ClassVar[Schema] = Schema(map_type="atomic")

    name: Annotated[str, Schema("Name of the Secret.")] = ""
    namespace: Annotated[str, Schema("Namespace of the Secret.")] = ""


class RedfishOptions(Model, frozen=True):
    """Options of the Redfish driver."""

    port: Annotated[int | None, Schema("Port of the Redfish service; 443 where it is not given.")] = None
    use_basic_auth: Annotated[bool, Schema("Send the password with each request instead of opening a session.")] = False
    system_name: Annotated[
        str, Schema("Name of the system to manage where one service stands for several machines.")
    ] = ""


class IpmitoolOptions(Model, frozen=True):
    """Options of the IPMI driver."""

    port: Annotated[int | None, Schema("UDP port of the BMC; 623 where it is not given.")] = None
    cipher_suite: Annotated[str, Schema("RMCP+ cipher suite to ask for, as a number.")] = ""


class IntelAmtOptions(Model, frozen=True):
    """Options of the Intel AMT driver."""

    port: Annotated[int | None, Schema("Port of the AMT service; 16992 where it is not given.")] = None
    host_scheme: Annotated[
        str, Schema("Whether to talk plain HTTP or HTTPS.", enum=tuple(HostScheme), default="http")
    ] = "http"


class RpcRequestOptions(Model, frozen=True):
    """Form of the RPC driver's HTTP requests."""

    http_content_type: Annotated[str, Schema("Content type of each request.")] = field(
        default="", name="httpContentType"
    )
    http_method: Annotated[str, Schema("HTTP method of each request.")] = field(default="", name="httpMethod")
    static_headers: Annotated[dict[str, list[str]], Schema("Headers sent unchanged with every request.")] = {}
    timestamp_format: Annotated[str, Schema("Format of the time in the timestamp header.")] = ""
    timestamp_header: Annotated[str, Schema("Header that carries the time of the request.")] = ""


class RpcSignatureOptions(Model, frozen=True):
    """Place of the RPC driver's signatures, and what they cover."""

    header_name: Annotated[str, Schema("Header that carries the signature.")] = ""
    append_algo_to_header_disabled: Annotated[
        bool, Schema("Use the header's name as it is instead of one header per algorithm.")
    ] = False
    included_payload_headers: Annotated[
        list[str], Schema("Headers whose values are signed together with the body.")
    ] = []


class RpcHmacOptions(Model, frozen=True):
    """Keys of the RPC driver's signatures."""

    prefix_sig_disabled: Annotated[bool, Schema("Leave out the algorithm's name before the signature.")] = False
    secrets: Annotated[
        dict[str, list[SecretReference]], Schema("Secrets to sign with, by algorithm (sha256 or sha512).")
    ] = {}


class RpcExperimentalOptions(Model, frozen=True):
    """Options of the RPC driver that may still change."""

    custom_request_payload: Annotated[str, Schema("JSON document to embed each request into.")] = ""
    dot_path: Annotated[str, Schema("Dotted path in that document at which the request is inserted.")] = ""


class RpcOptions(Model, frozen=True):
    """Options of the RPC driver, which hands each operation to a web service."""

    consumer_url: Annotated[str, Schema("Address of the web service.")] = required(str, name="consumerURL")
    log_notifications_disabled: Annotated[bool, Schema("Keep requests and answers out of the log.")] = False
    request: Annotated[RpcRequestOptions | None, Schema("Shape of the HTTP requests.")] = None
    signature: Annotated[RpcSignatureOptions | None, Schema("Signing of the HTTP requests.")] = None
    hmac: Annotated[RpcHmacOptions | None, Schema("Keys to sign with.")] = None
    experimental: Annotated[RpcExperimentalOptions | None, Schema("Options that may still change.")] = None


class HomeAssistantOptions(Model, frozen=True):
    """Options of the Home Assistant driver, which switches a power socket."""

    switch_entity_id: Annotated[str, Schema("Entity of the switch that feeds the machine.")] = required(
        str, name="switchEntityID"
    )
    power_operation_delay_seconds: Annotated[
        Int32, Schema("Seconds to wait after a switch operation before the next.")
    ] = 0


ProviderName = Annotated[
    str,
    Schema(
        "Name of a driver, in any case.",
        pattern="(?i)^(ipmitool|asrockrack|gofish|IntelAMT|dell|supermicro|openbmc)$",
    ),
]


class ProviderOptions(Model, frozen=True):
    """Options of the drivers that may talk to the BMC."""

    preferred_order: Annotated[list[ProviderName], Schema("Drivers to try before the others, in this order.")] = []
    redfish: Annotated[RedfishOptions | None, Schema("Options of the Redfish driver.")] = None
    ipmitool: Annotated[IpmitoolOptions | None, Schema("Options of the IPMI driver.")] = None
    intel_amt: Annotated[IntelAmtOptions | None, Schema("Options of the Intel AMT driver.")] = field(
        default=None, name="intelAMT"
    )
    rpc: Annotated[RpcOptions | None, Schema("Use the RPC driver, and no other, with these options.")] = None
    homeassistant: Annotated[
        HomeAssistantOptions | None, Schema("Use the Home Assistant driver, and no other, with these options.")
    ] = None


class Connection(Model, frozen=True):
    """Address and credentials of a BMC."""

    host: Annotated[str, Schema("Host name or IP address of the BMC.", min_length=1)] = required(str)
    port: Annotated[int, Schema("Ignored: each driver has a port in its own options.", default=IPMI_PORT)] = IPMI_PORT
    auth_secret_ref: Annotated[
        SecretReference | None, Schema("Secret with keys username and password; not needed by the RPC driver.")
    ] = None
    insecure_tls: Annotated[bool, Schema("Accept any certificate of the BMC.")] = required(bool, name="insecureTLS")
    provider_options: Annotated[ProviderOptions | None, Schema("Options of the drivers.")] = None
