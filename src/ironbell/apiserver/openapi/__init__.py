"""OpenAPI documents, versions 2 and 3, of every kind that is served."""
