"""Label and field selectors: their texts, and the predicates that they become."""
