"""Defaults and checks of Toys."""

from __future__ import annotations

from typing import Final

from ironbell.contract.admission import Admission, FieldProblem, invalid
from ironbell.contract.system import KindAdmission
from ironbell.controllers.toy.kinds import TOY
from ironbell.kube.decision import Fields


def default(new: Fields, old: Fields | None) -> Fields:
    """A toy is red if its color is unset."""
    spec = new.get("spec") or {}
    return new if spec.get("color") else {**new, "spec": {**spec, "color": "red"}}


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """A toy cannot be smaller than nothing."""
    size = (new.get("spec") or {}).get("size", 0)
    return [invalid("spec.size", size, "must not be negative")] if size < 0 else []


ADMISSION: Final = KindAdmission((Admission(TOY, default, validate),))
