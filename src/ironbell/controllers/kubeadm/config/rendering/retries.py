"""Joining more than once, for networks where the first try may fail.

A KubeadmConfig asks for it by an annotation; without it the data are upstream's. Only workers try again: a control
plane machine that failed half-way may be a member of etcd already, and its replacement is the control plane's business.

Upstream had an experimental switch for this (`useExperimentalRetryJoin`), which its v1beta2 has no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ironbell.base.numbers import decimal
from ironbell.controllers.kubeadm.config.rendering.files import FileError
from ironbell.controllers.kubeadm.config.rendering.userdata import Role

ANNOTATION: Final = "ironbell.dev/join-attempts"
MOST: Final = 10
_PAUSE_S: Final = 10


def join_attempts(annotations: Mapping[str, str], role: Role) -> int:
    """How often a machine tries to join.

    Raises:
        FileError: the annotation is no number that makes sense.
    """
    text = annotations.get(ANNOTATION, "1")
    number = decimal(text)
    if number is None or not 1 <= number <= MOST:
        raise FileError(f"annotation {ANNOTATION} {text!r} is no number from 1 to {MOST}")
    return number if role is Role.WORKER else 1


def repeated(command: str, attempts: int) -> str:
    """A shell command that tries another up to so many times, and undoes what a failed one left."""
    if attempts == 1:
        return command
    tries = " ".join(str(number) for number in range(1, attempts + 1))
    undo = f"[ $try = {attempts} ] || {{ kubeadm reset --force; sleep {_PAUSE_S}; }}"
    return f"sh -c 'for try in {tries}; do {command} && exit 0; {undo}; done; exit 1'"
