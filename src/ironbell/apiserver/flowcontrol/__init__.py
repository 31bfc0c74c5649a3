"""API priority and fairness: groups of requests, and how many of each group are served at once.

FlowSchemas group requests; PriorityLevelConfigurations limit how many of a group are served and wait. This package
reads the objects; `http/fairness.py` queues the requests.
"""
