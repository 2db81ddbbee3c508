"""Requests that an OpenAPI description allows, and whether an answer is one that it names."""

from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]


def bodies(operation: Schema) -> st.SearchStrategy[Any]:
    """Return the JSON bodies that an operation takes."""
    return values(operation["requestBody"]["content"]["application/json"]["schema"])


def values(schema: Schema) -> st.SearchStrategy[Any]:
    """Return the values that a schema allows."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "oneOf" in schema:
        return st.one_of(*map(values, schema["oneOf"]))
    kind = schema["type"]
    if kind == "string":
        return st.text(min_size=schema.get("minLength", 0), max_size=30)
    if kind == "integer":
        return st.integers(schema.get("minimum", -5), schema.get("maximum", 5))
    if kind == "boolean":
        return st.booleans()
    if kind == "array":
        return st.lists(values(schema["items"]), min_size=schema.get("minItems", 0), max_size=4)
    assert kind == "object"
    fields = {name: values(field) for name, field in schema["properties"].items()}
    required = {name: fields.pop(name) for name in schema["required"]}
    return st.fixed_dictionaries(required, optional=fields)


def conforms(value: object, schema: Schema) -> bool:
    """Return whether a value is as a schema says."""
    if "oneOf" in schema:
        return sum(conforms(value, one) for one in schema["oneOf"]) == 1
    if isinstance(value, bool):
        return schema["type"] == "boolean"
    if isinstance(value, list):
        sizes = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        return schema["type"] == "array" and sizes and all(conforms(item, schema["items"]) for item in value)
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        has_all = set(schema.get("required", ())) <= set(value)
        return (
            schema["type"] == "object" and has_all and all(conforms(value[n], fields[n]) for n in fields if n in value)
        )
    kinds: Any = {"string": str, "integer": int, "number": (int, float)}
    return schema["type"] in kinds and isinstance(value, kinds[schema["type"]])


def names_answer(operation: Schema, status: int, value: object) -> bool:
    """Return whether an operation's description has an answer with this status and body."""
    answer = operation["responses"].get(str(status))
    return answer is not None and conforms(value, answer["content"]["application/json"]["schema"])
