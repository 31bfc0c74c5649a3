"""Conditions of Cluster API objects: both sets, made by adding up those of one object, of many, or by copying one."""

from ironbell.contract.conditions.aggregate import aggregate
from ironbell.contract.conditions.merge import Owned, Priority, Reasons, owned
from ironbell.contract.conditions.mirror import Fallback, mirror
from ironbell.contract.conditions.order import set_condition
from ironbell.contract.conditions.reading import conditions_of
from ironbell.contract.conditions.summary import summary

__all__ = [
    "Fallback",
    "Owned",
    "Priority",
    "Reasons",
    "aggregate",
    "conditions_of",
    "mirror",
    "owned",
    "set_condition",
    "summary",
]
