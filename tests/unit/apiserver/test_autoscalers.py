"""What anybody may write into the annotations that autoscaling/v1 has in place of fields."""

from __future__ import annotations

import json

import pytest

from ironbell.apiserver.builtin.autoscalers import NEW, convert_autoscaler


@pytest.mark.parametrize("odd", [{}, [], {"a": 1}, 7, True])
def test_amounts_of_any_form_are_carried_as_they_are(odd: object) -> None:
    metric = {"type": "Object", "object": {"averageValue": "1", "targetValue": odd, "metricName": "m"}}
    annotations = {"autoscaling.alpha.kubernetes.io/metrics": json.dumps([metric])}
    old = {"apiVersion": "autoscaling/v1", "metadata": {"annotations": annotations}, "spec": {"maxReplicas": 1}}
    (result,) = convert_autoscaler(old, NEW)["spec"]["metrics"]
    assert result["object"]["target"] == {"type": "AverageValue", "value": odd, "averageValue": "1"}
