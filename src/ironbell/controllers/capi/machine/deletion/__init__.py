"""A Machine's deletion, step by step: its pods go elsewhere, then its host goes, its bootstrap data, its Node. Pure."""
