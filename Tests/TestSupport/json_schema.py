"""As much of JSON Schema (draft-07) as the schemas here need. Unknown keywords are refused, so that
no rule is silently skipped."""

import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$id", "$ref", "title", "description", "definitions", "type", "required",
         "properties", "additionalProperties", "patternProperties", "items", "enum", "const",
         "minimum", "maximum", "minLength", "pattern", "minItems", "allOf", "anyOf"}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def problems(value, schema, root=None, path="$"):
    """The errors, each as `where: what`."""
    root = root or schema
    assert set(schema) <= KNOWN, f"{path}: no rule {set(schema) - KNOWN} here"
    found = []
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        found += problems(value, target, root, path)
    for part in schema.get("allOf", ()):
        found += problems(value, part, root, path)
    if "anyOf" in schema and all(problems(value, part, root, path) for part in schema["anyOf"]):
        found.append(f"{path}: none of anyOf")
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, name) for name in types):
        return found + [f"{path}: {type(value).__name__}, not {types}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{path}: not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is none of {schema['enum']}")
    if is_type(value, "number"):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            found.append(f"{path}: {value} is out of range")
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            found.append(f"{path}: too short")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            found.append(f"{path}: {value[:60]!r} does not match {schema['pattern']}")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            found.append(f"{path}: too few")
        for index, item in enumerate(value):
            found += problems(item, schema.get("items", {}), root, f"{path}[{index}]")
    if isinstance(value, dict):
        found += members(value, schema, root, path)
    return found


def members(value, schema, root, path):
    found = [f"{path}: no {name}" for name in schema.get("required", ()) if name not in value]
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, item in value.items():
        rules = [rule for pattern, rule in patterns.items() if re.search(pattern, name)]
        if name in named:
            rules.append(named[name])
        if not rules and schema.get("additionalProperties", True) is False:
            found.append(f"{path}: {name} is unknown")
        for rule in rules:
            found += problems(item, rule, root, f"{path}.{name}")
    return found
