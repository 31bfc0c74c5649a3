"""The workflow service: gRPC for agents, their live logs, and reading those back.

`server.WorkflowServer` puts it together. Decisions about Workflows (`selection`, `report`, `reboot`) are pure; writes
are patches with the version that was decided on. The only state beside the API is the logs' files.
"""
