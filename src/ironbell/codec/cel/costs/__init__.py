"""Costs of CEL expressions: estimates before they are used, and what an evaluation spends."""
