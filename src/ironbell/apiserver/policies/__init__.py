"""Admission policies: rules and changes in CEL, asked of writes by the server itself."""
