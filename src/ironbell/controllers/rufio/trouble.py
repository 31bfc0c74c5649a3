"""The one error that talking to a BMC ends in, sorted by what can be done about it."""

from __future__ import annotations

from ironbell.base.errors import IronbellError, Retry
from ironbell.controllers.rufio.names import Trouble

_REMEDIES = {
    Trouble.UNREACHABLE: "",
    Trouble.AUTHENTICATION: "correct username and password in the Secret of spec.connection.authSecretRef",
    Trouble.CERTIFICATE: (
        "set spec.connection.insecureTLS, or put the authority's certificate under ca.crt into the Secret of"
        " spec.connection.authSecretRef"
    ),
    Trouble.CREDENTIALS: "",
    Trouble.ADDRESS: "",
    Trouble.REFUSED: "",
    Trouble.OUTCOME_UNKNOWN: "",
}


class BmcTroubleError(IronbellError):
    """Talking to a BMC failed; the message ends with the remedy where there is one. Never holds a secret."""

    def __init__(self, trouble: Trouble, message: str) -> None:
        remedy = remedy_of(trouble)
        super().__init__(f"{message}; {remedy}" if remedy else message, reason=trouble)
        self.trouble = trouble
        if trouble is Trouble.REFUSED:
            self.retry = Retry.NEVER


def remedy_of(trouble: Trouble) -> str:
    """What a person can do about it; empty if the message itself is all that is known."""
    return _REMEDIES[trouble]


def trouble_of(error: IronbellError) -> Trouble:
    """What kind of trouble an error of a fact or a performer is."""
    return error.trouble if isinstance(error, BmcTroubleError) else Trouble.UNREACHABLE
