"""ValidatingAdmissionPolicies: rules in CEL, asked of writes by the server itself."""
