"""Python types and markers become the structural schema that they stand for."""

from typing import Annotated, Any, ClassVar

import pytest

from ironbell.api.crd.markers import Int64, Quantity, Rule, Schema, Time, required
from ironbell.api.crd.schema import place_schema, root_schema
from ironbell.api.meta import Model, Resource, SnakeModel


class Part(Model, frozen=True):
    """A part
    of something.

    More about it.
    """

    schema_: ClassVar[Schema] = Schema(max_properties=1, rules=(Rule("self.a > 0", "a is positive"),))

    part_name: Annotated[str, Schema("Name of the part.", min_length=1)] = required(str)
    part_id: str = required(str, name="partID")
    size: Int64 = 0


class Snake(SnakeModel, frozen=True):
    """Snake."""

    two_words: str = ""


class Whole(Resource, frozen=True):
    """The whole."""

    spec: Part = Part()


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (str, {"type": "string"}),
        (bool | None, {"type": "boolean"}),
        (float, {"type": "number"}),
        (Int64, {"type": "integer", "format": "int64"}),
        (Int64 | None, {"type": "integer", "format": "int64"}),
        (Time, {"type": "string", "format": "date-time"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, str], {"type": "object", "additionalProperties": {"type": "string"}}),
        (dict[str, Any], {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (Any, {"x-kubernetes-preserve-unknown-fields": True}),
    ],
)
def test_gives_each_type_its_keywords(hint: Any, expected: dict[str, Any]) -> None:
    assert place_schema(hint) == expected


@pytest.mark.parametrize("hint", [bytes, set[str], dict[int, str], int | str, object])
def test_refuses_types_without_counterpart(hint: Any) -> None:
    with pytest.raises(TypeError, match="structural schema"):
        place_schema(hint)


def test_quantity_takes_numbers_and_text() -> None:
    schema = place_schema(Quantity)
    assert schema["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert schema["x-kubernetes-int-or-string"] is True
    assert "type" not in schema


def test_object_speaks_for_itself_by_docstring_and_class_marker() -> None:
    schema = place_schema(Part)
    assert schema["description"] == "A part of something."
    assert schema["maxProperties"] == 1
    assert schema["x-kubernetes-validations"] == [{"rule": "self.a > 0", "message": "a is positive"}]


def test_marker_of_the_field_wins_over_marker_of_the_type() -> None:
    schema = place_schema(Annotated[Part | None, Schema("Another part.")])
    assert schema["description"] == "Another part."
    assert schema["maxProperties"] == 1
    assert place_schema(Annotated[Time, Schema("When.", format="date")])["format"] == "date"


def test_required_fields_are_those_that_are_always_written() -> None:
    schema = place_schema(Part)
    assert schema["required"] == ["partID", "partName"]
    assert set(schema["properties"]) == {"partName", "partID", "size"}


def test_snake_model_keeps_python_names() -> None:
    assert set(place_schema(Snake)["properties"]) == {"two_words"}


def test_all_keywords_arrive() -> None:
    marker = Schema(
        "Text.",
        pattern="^a$",
        enum=("a", 1),
        default=False,
        minimum=0,
        maximum=2.5,
        max_length=3,
        min_items=0,
        max_items=4,
        min_properties=5,
        nullable=True,
        list_type="map",
        list_map_keys=("x", "y"),
        map_type="granular",
        embedded_resource=True,
        preserve_unknown_fields=True,
        rules=(
            Rule("r", message_expression="m", reason="FieldValueInvalid", field_path=".x", optional_old_self=False),
        ),
    )
    assert place_schema(Annotated[str, marker]) == {
        "type": "string",
        "description": "Text.",
        "pattern": "^a$",
        "enum": ["a", 1],
        "default": False,
        "minimum": 0,
        "maximum": 2.5,
        "maxLength": 3,
        "minItems": 0,
        "maxItems": 4,
        "minProperties": 5,
        "nullable": True,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["x", "y"],
        "x-kubernetes-map-type": "granular",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-validations": [
            {
                "rule": "r",
                "messageExpression": "m",
                "reason": "FieldValueInvalid",
                "fieldPath": ".x",
                "optionalOldSelf": False,
            }
        ],
    }


def test_root_leaves_metadata_to_the_api_server() -> None:
    schema = root_schema(Whole)
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert schema["description"] == "The whole."
    assert root_schema(Whole, description="Other.")["description"] == "Other."


def test_roots_share_no_data() -> None:
    root_schema(Whole)["properties"]["metadata"]["changed"] = True
    assert root_schema(Whole)["properties"]["metadata"] == {"type": "object"}
