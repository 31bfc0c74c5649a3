"""The workflow service: gRPC for agents, and storage and reading of their logs.

`port.server.WorkflowServer` composes it. Decisions about Workflows (`selection`, `report`, `reboot`) are pure; writes
are patches on the condition of the version that was decided on. The only state besides the API is the logs' files.
"""
