"""API priority and fairness: which requests there are, and how many of each go at once.

FlowSchemas say which requests are alike, PriorityLevelConfigurations how many of these may be worked on and may wait.
Here is what the objects say; who waits for whom is decided in `http/fairness.py`.
"""
