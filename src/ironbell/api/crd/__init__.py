"""CustomResourceDefinitions from the API types: the types and their markers are the single source."""
