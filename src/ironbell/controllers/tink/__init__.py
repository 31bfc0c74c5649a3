"""Controllers of the group `tinkerbell.org`: Workflow, Template and Hardware.

`docs/workflows.md` tells users what they see; `states` holds the state machine that is drawn there.
"""
