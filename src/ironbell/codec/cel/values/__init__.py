"""Values of CEL: their types, equality, order and arithmetic."""
