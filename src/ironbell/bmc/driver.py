"""What every BMC driver can do, and the errors it ends in.

An error says whether the BMC was reached, understood, and whether a change may have happened all the same; that is all
that a caller needs to decide what to do next. No error holds a password or a token.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.base.errors import IronbellError, Retry


class PowerState(Enum):
    """Power as the BMC reports it; transitions count as what they leave."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


class PowerCommand(Enum):
    """Changes of power."""

    ON = "on"
    OFF = "off"
    SOFT = "soft"
    CYCLE = "cycle"
    RESET = "reset"


class BmcError(IronbellError):
    """Base of what drivers raise."""

    reason = "BMCError"


class UnreachableError(BmcError):
    """No connection, or no answer. A change that was asked for did not happen."""

    reason = "BMCUnreachable"


class OutcomeUnknownError(BmcError):
    """The connection broke after a change was sent: it may have happened."""

    reason = "BMCOutcomeUnknown"


class AuthenticationError(BmcError):
    """User name or password are wrong."""

    reason, retry = "BMCAuthenticationFailed", Retry.NEVER


class UntrustedCertificateError(BmcError):
    """The BMC's certificate is not signed by an authority that we know, or is for another host."""

    reason, retry = "BMCCertificateUntrusted", Retry.NEVER


class BusyError(BmcError):
    """The BMC answers that it cannot answer now."""

    reason = "BMCBusy"


class UnsupportedError(BmcError):
    """The BMC, or the driver, has no such function."""

    reason, retry = "BMCUnsupported", Retry.NEVER


class RejectedError(BmcError):
    """The BMC understood and refuses."""

    reason, retry = "BMCRefused", Retry.NEVER


class MalformedAnswerError(BmcError):
    """The BMC answers something that makes no sense."""

    reason = "BMCMalformedAnswer"


class Driver(Protocol):
    """An open session with one BMC. Every call is a cancellation point and raises `BmcError`."""

    async def power_state(self) -> PowerState: ...

    async def set_power(self, command: PowerCommand) -> None:
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
