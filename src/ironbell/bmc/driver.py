"""The interface of BMC drivers, and their errors.

The type of an error shows whether the BMC was reached, whether it understood the request, and whether a change may have
happened nevertheless; the caller decides by it. No error holds a password or a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Final, Protocol

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.machine import PowerState
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.base.errors import IronbellError, Retry


class BmcProblem(StrEnum):
    """Problems with a BMC, by their remedy; the values are reasons of events and conditions."""

    UNREACHABLE = "BMCUnreachable"
    """No connection, no response, or a response that cannot be read: a retry may help."""
    AUTHENTICATION = "BMCAuthenticationFailed"
    """User name or password are wrong: frequent retries lock accounts."""
    CERTIFICATE = "BMCCertificateUntrusted"
    """No known authority signed the BMC's certificate."""
    CREDENTIALS = "BMCCredentialsMissing"
    """The Secret, or a key in it, does not exist."""
    ADDRESS = "BMCAddressNotConfirmed"
    """The BMC's address has changed, and no user who may read the Secret has confirmed the new one."""
    REJECTED = "BMCRefused"
    """The BMC rejected the request, or the BMC or driver does not support it."""
    OUTCOME_UNKNOWN = "BMCOutcomeUnknown"
    """The connection broke after the operation was sent: it may have happened."""


_REMEDIES: Final[Mapping[str, str]] = {
    BmcProblem.UNREACHABLE: "check its address, port and power",
    BmcProblem.AUTHENTICATION: "correct username and password in the Secret of spec.connection.authSecretRef",
    BmcProblem.CERTIFICATE: (
        "set spec.connection.insecureTLS, or put the authority's certificate under ca.crt into the Secret of"
        " spec.connection.authSecretRef"
    ),
}


def remedy_of(problem: str) -> str:
    """The remedy of a problem; empty where the message itself names it."""
    return _REMEDIES.get(problem, "")


def reported(problem: str, message: str) -> str:
    """The message of a condition about a BMC. Upstream's conditions have no reason, so the message begins with it."""
    return f"{problem}: {message}"


def reported_problem(message: str) -> str:
    """The problem with which the message of a condition begins; empty if it reports none."""
    return next((problem for problem in BmcProblem if message.startswith(reported(problem, ""))), "")


def reported_cause(problem: str, message: str) -> str:
    """The message of a condition or an error without its problem and the problem's remedy."""
    return message.removeprefix(reported(problem, "")).removesuffix(f"; {remedy_of(problem)}")


class BmcError(IronbellError):
    """Base of the errors of drivers. The message ends with the remedy of its problem.

    `UNREACHABLE` has several causes, so its remedy is part of the messages to which it applies.
    """

    problem: ClassVar[BmcProblem] = BmcProblem.UNREACHABLE

    def __init__(self, message: str) -> None:
        remedy = remedy_of(self.problem) if self.problem is not BmcProblem.UNREACHABLE else ""
        super().__init__(f"{message}; {remedy}" if remedy else message, reason=self.problem)


class UnreachableError(BmcError):
    """No connection, or no response. A requested change did not happen."""


class OutcomeUnknownError(BmcError):
    """The connection broke after a change was sent: it may have happened."""

    problem = BmcProblem.OUTCOME_UNKNOWN


class AuthenticationError(BmcError):
    """User name or password are wrong."""

    problem = BmcProblem.AUTHENTICATION


class UntrustedCertificateError(BmcError):
    """No known authority signed the BMC's certificate, or it is for another host."""

    problem = BmcProblem.CERTIFICATE


class CredentialsError(BmcError):
    """The Secret with user name and password, or a key in it, does not exist."""

    problem = BmcProblem.CREDENTIALS


class UnconfirmedAddressError(BmcError):
    """The password may not be sent to this address."""

    problem = BmcProblem.ADDRESS


class BusyError(BmcError):
    """The BMC responds that it cannot serve the request now."""


class UnsupportedError(BmcError):
    """The BMC or the driver does not support the request."""

    problem, retry = BmcProblem.REJECTED, Retry.NEVER


class RejectedError(BmcError):
    """The BMC understood the request and rejected it."""

    problem, retry = BmcProblem.REJECTED, Retry.NEVER


class MalformedResponseError(BmcError):
    """The response of the BMC cannot be read."""


def problem_of(error: IronbellError) -> BmcProblem:
    """The problem behind the error of a fact or a performer."""
    return error.problem if isinstance(error, BmcError) else BmcProblem.UNREACHABLE


class Driver(Protocol):
    """An open session with one BMC. Every call is a cancellation point and raises `BmcError`."""

    async def power_state(self) -> PowerState: ...

    async def set_power(self, command: PowerAction) -> None:
        """Return when the BMC has accepted the command, not when it has completed. A reached state is success."""
        ...

    async def set_boot_device(self, device: str, *, persistent: bool, efi: bool) -> None:
        """Boot from `pxe`, `disk`, `cdrom`, `bios`, ... next time, or always if `persistent`."""
        ...

    async def insert_media(self, url: str, *, kind: str) -> None:
        """Insert an image into a virtual drive of that kind (`CD`), replacing its current image."""
        ...

    async def eject_media(self, *, kind: str) -> None:
        """Eject the images of all virtual drives of that kind; empty drives are success."""
        ...

    async def inventory(self) -> Inventory:
        """The hardware of the server, as far as the BMC reports it."""
        ...

    async def close(self) -> None:
        """Log out."""
        ...
