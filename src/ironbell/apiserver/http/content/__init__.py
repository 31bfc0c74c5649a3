"""Bodies of requests and responses: media types, limits, documents, warnings."""
