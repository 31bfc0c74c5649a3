"""A small custom resource for tests, and its manifests."""

from __future__ import annotations

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.test.ironbell.dev
spec:
  group: test.ironbell.dev
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Colour, type: string, jsonPath: .spec.colour}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    - {name: Size, type: integer, jsonPath: .spec.size, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: Widget is a thing for tests.
        required: [spec]
        properties:
          spec:
            type: object
            description: What the widget should be.
            required: [colour]
            properties:
              colour: {type: string, enum: [red, green, blue], description: Paint of the widget.}
              size: {type: integer, minimum: 1, default: 3}
              replicas: {type: integer, default: 1}
              labels: {type: object, additionalProperties: {type: string}}
              parts:
                type: array
                description: What the widget is made of.
                items:
                  type: object
                  properties:
                    name: {type: string, description: Name of the part.}
                    weight: {type: integer}
          status:
            type: object
            properties:
              phase: {type: string}
              replicas: {type: integer}
              conditions:
                type: array
                items:
                  type: object
                  required: [type, status]
                  properties:
                    type: {type: string}
                    status: {type: string}
                    reason: {type: string}
                    message: {type: string}
                    lastTransitionTime: {type: string, format: date-time}
"""


def widget(name: str = "one", **spec: object) -> str:
    """A manifest."""
    fields = "\n".join(f"  {key}: {value}" for key, value in ({"colour": "red"} | spec).items())
    return f"apiVersion: test.ironbell.dev/v1\nkind: Widget\nmetadata:\n  name: {name}\nspec:\n{fields}\n"
