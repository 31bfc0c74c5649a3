"""How long talking to a BMC may take. Slow ones need up to 30 s for a single answer."""

from __future__ import annotations

from typing import Final

TURN_TIMEOUT_S: Final = 60.0
"""Waiting for other calls to the same BMC."""
CONNECT_TIMEOUT_S: Final = 60.0
"""A login and what a driver asks first."""
CALL_TIMEOUT_S: Final = 75.0
"""One question or operation, with what a driver asks before it."""
INVENTORY_CALL_TIMEOUT_S: Final = 300.0
"""Reading all parts of a machine: dozens of answers."""
CLOSE_TIMEOUT_S: Final = 5.0
USE_TIMEOUT_S: Final = TURN_TIMEOUT_S + CALL_TIMEOUT_S + CONNECT_TIMEOUT_S + CALL_TIMEOUT_S
"""All of it, with the second try after a session had expired."""
INVENTORY_TIMEOUT_S: Final = TURN_TIMEOUT_S + CONNECT_TIMEOUT_S + 2 * INVENTORY_CALL_TIMEOUT_S
EFFECT_TIMEOUT_S: Final = USE_TIMEOUT_S + 15.0
"""A little more, so that the outcome can be stored."""
