"""Who calls the embedded API, and what each identity may do: certificates, tokens, roles, kubeconfigs."""
