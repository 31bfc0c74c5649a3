"""What every BMC driver can do, and the errors it ends in.

An error says whether the BMC was reached, understood, and whether a change may have happened all the same; that is all
that a caller needs to decide what to do next. No error holds a password or a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Final, Protocol

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.machine import PowerState
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.base.errors import IronbellError, Retry


class Trouble(StrEnum):
    """What went wrong between us and a BMC, by what can be done about it; reasons of events and conditions."""

    UNREACHABLE = "BMCUnreachable"
    """No connection, no answer, or an answer that makes no sense now: worth trying again."""
    AUTHENTICATION = "BMCAuthenticationFailed"
    """User name or password are wrong: trying often locks accounts."""
    CERTIFICATE = "BMCCertificateUntrusted"
    """The BMC's certificate is not signed by an authority that we know."""
    CREDENTIALS = "BMCCredentialsMissing"
    """The Secret, or a key in it, does not exist."""
    ADDRESS = "BMCAddressNotConfirmed"
    """The BMC's address has changed, and nobody who may read the Secret has confirmed the new one."""
    REFUSED = "BMCRefused"
    """The BMC understood and will not do it, or nobody knows how to make it do it."""
    OUTCOME_UNKNOWN = "BMCOutcomeUnknown"
    """The connection broke after the operation was sent: it may have happened."""


_REMEDIES: Final[Mapping[str, str]] = {
    Trouble.AUTHENTICATION: "correct username and password in the Secret of spec.connection.authSecretRef",
    Trouble.CERTIFICATE: (
        "set spec.connection.insecureTLS, or put the authority's certificate under ca.crt into the Secret of"
        " spec.connection.authSecretRef"
    ),
}


def remedy_of(trouble: Trouble) -> str:
    """What a person can do about it; empty where the message itself is all that is known."""
    return _REMEDIES.get(trouble, "")


class BmcError(IronbellError):
    """Base of what talking to a BMC ends in. The message ends with the remedy where there is one."""

    trouble: ClassVar[Trouble] = Trouble.UNREACHABLE

    def __init__(self, message: str) -> None:
        remedy = remedy_of(self.trouble)
        super().__init__(f"{message}; {remedy}" if remedy else message, reason=self.trouble)


class UnreachableError(BmcError):
    """No connection, or no answer. A change that was asked for did not happen."""


class OutcomeUnknownError(BmcError):
    """The connection broke after a change was sent: it may have happened."""

    trouble = Trouble.OUTCOME_UNKNOWN


class AuthenticationError(BmcError):
    """User name or password are wrong."""

    trouble = Trouble.AUTHENTICATION


class UntrustedCertificateError(BmcError):
    """The BMC's certificate is not signed by an authority that we know, or is for another host."""

    trouble = Trouble.CERTIFICATE


class CredentialsError(BmcError):
    """The Secret with user name and password, or a key in it, does not exist."""

    trouble = Trouble.CREDENTIALS


class UnconfirmedAddressError(BmcError):
    """The password may not be sent to this address."""

    trouble = Trouble.ADDRESS


class BusyError(BmcError):
    """The BMC answers that it cannot answer now."""


class UnsupportedError(BmcError):
    """The BMC, or the driver, has no such function."""

    trouble, retry = Trouble.REFUSED, Retry.NEVER


class RejectedError(BmcError):
    """The BMC understood and refuses."""

    trouble, retry = Trouble.REFUSED, Retry.NEVER


class MalformedAnswerError(BmcError):
    """The BMC answers something that makes no sense."""


def trouble_of(error: IronbellError) -> Trouble:
    """The kind of trouble that an error of a fact or a performer is."""
    return error.trouble if isinstance(error, BmcError) else Trouble.UNREACHABLE


class Driver(Protocol):
    """An open session with one BMC. Every call is a cancellation point and raises `BmcError`."""

    async def power_state(self) -> PowerState: ...

    async def set_power(self, command: PowerAction) -> None:
        """Returns when the BMC has accepted it, not when it is done. ON and OFF of what is so already do nothing."""
        ...

    async def set_boot_device(self, device: str, *, persistent: bool, efi: bool) -> None:
        """`pxe`, `disk`, `cdrom`, `bios`, ... for the next boot, or for all from now on."""
        ...

    async def insert_media(self, url: str, *, kind: str) -> None:
        """Put an image into a virtual drive of that kind (`CD`), in place of what is there."""
        ...

    async def eject_media(self, *, kind: str) -> None:
        """Empty the virtual drives of that kind; nothing there is success."""
        ...

    async def inventory(self) -> Inventory:
        """The machine's parts, as far as the BMC tells them."""
        ...

    async def close(self) -> None:
        """Log out."""
        ...
