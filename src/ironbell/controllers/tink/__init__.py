"""Controllers of the group `tinkerbell.org`: Workflow, Template and Hardware.

`docs/workflows.md` describes them for users; `states` holds the state machine that is drawn there.
"""
