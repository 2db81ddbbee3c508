"""The description of the API, as OpenAPI 3: what /spec answers."""

from typing import Any

from seqtool import __version__
from seqtool.serving.models import ServedModels
from seqtool.serving.settings import ServeSettings

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
SOURCE: Schema = {"type": "string", "minLength": 1}
TEXTS: Schema = {"oneOf": [SOURCE, {"type": "array", "items": TEXT, "minItems": 1}]}
ERRORS = {
    400: "The request cannot be",
    403: "The API key is not known",
    408: "The request did not come to its end in time",
    413: "The request is too large",
    429: "Too many requests",
    503: "Too much is waiting already, or the server is shutting down",
}


def make_spec(models: ServedModels, settings: ServeSettings) -> Schema:
    """Return the description of a server with these models."""
    sources = {"type": "string", "enum": ["auto", *models.codes]}
    targets = {"type": "string", "enum": models.codes}
    languages = {"source": sources, "target": targets, "api_key": TEXT}
    texts = {"q": TEXTS, **languages}
    translate = {
        **texts,
        "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
        "alternatives": {**NUMBER, "minimum": 0, "maximum": settings.max_alternatives, "default": 0},
    }
    details = {
        **texts,
        "n_best": {**NUMBER, "minimum": 1, "maximum": settings.max_alternatives + 1, "default": 1},
        "token_scores": {"type": "boolean", "default": False},
    }
    paths = {
        "/translate": {"post": post("Translate a text or several", translate, ["q", "source", "target"], TRANSLATED)},
        "/detect": {"post": post("Detect the language of a text", {"q": TEXTS, "api_key": TEXT}, ["q"], CANDIDATES)},
        "/translate_file": {"post": post_file(languages)},
        "/seqtool/translate": {
            "post": post(
                "Translate, with scores, tokens and alignments", details, ["q", "source", "target"], DETAILS, False
            )
        },
        "/suggest": {"post": {"summary": "Disabled", "responses": {"403": error("Suggestions are disabled")}}},
        "/languages": {"get": get("The languages that are served", LANGUAGES)},
        "/frontend/settings": {"get": get("What a page needs to know", {"type": "object"})},
        "/health": {"get": get("Whether the server is up", {"type": "object", "properties": {"status": TEXT}})},
        "/spec": {"get": get("This description", {"type": "object"})},
        "/metrics": {"get": {"summary": "Metrics for Prometheus", "responses": {"200": {"description": "Metrics"}}}},
    }
    info = {
        "title": "seqtool serve",
        "version": __version__,
        "description": "LibreTranslate's API, and one address more",
    }
    return {"openapi": "3.0.3", "info": info, "paths": paths}


CANDIDATE: Schema = {
    "type": "object",
    "properties": {"confidence": {"type": "number"}, "language": TEXT},
    "required": ["confidence", "language"],
}
CANDIDATES: Schema = {"type": "array", "items": CANDIDATE}
TRANSLATED: Schema = {
    "type": "object",
    "properties": {
        "translatedText": {"oneOf": [TEXT, {"type": "array", "items": TEXT}]},
        "alternatives": {"type": "array", "items": {"oneOf": [TEXT, {"type": "array", "items": TEXT}]}},
        "detectedLanguage": {"oneOf": [CANDIDATE, CANDIDATES]},
    },
    "required": ["translatedText"],
}
LANGUAGES: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"code": TEXT, "name": TEXT, "targets": {"type": "array", "items": TEXT}},
        "required": ["code", "name", "targets"],
    },
}
LINE: Schema = {
    "type": "object",
    "properties": {
        "text": TEXT,
        "score": {"type": "number"},
        "tokens": {"type": "array", "items": TEXT},
        "source_tokens": {"type": "array", "items": TEXT},
        "alignment": {"type": "array", "items": {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}},
        "token_scores": {"type": "array", "items": {"type": "number"}},
        "hypotheses": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["text"],
}
DETAILS: Schema = {
    "type": "object",
    "properties": {
        "texts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"text": TEXT, "lines": {"type": "array", "items": LINE}},
                "required": ["text", "lines"],
            },
        },
        "detectedLanguage": CANDIDATES,
    },
    "required": ["texts"],
}


def get(summary: str, answer: Schema) -> Schema:
    """Return an operation that takes nothing."""
    return {"summary": summary, "responses": {"200": success(answer)}}


def post(summary: str, fields: Schema, required: list[str], answer: Schema, with_form: bool = True) -> Schema:
    """Return an operation that takes fields, as JSON or as a form."""
    body = {"schema": {"type": "object", "properties": fields, "required": required}}
    content = {"application/json": body}
    if with_form:
        as_form = {name: SOURCE if name == "q" else schema for name, schema in fields.items()}
        content["application/x-www-form-urlencoded"] = {
            "schema": {"type": "object", "properties": as_form, "required": required}
        }
    failures = {str(status): error(reason) for status, reason in ERRORS.items()}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": content},
        "responses": {"200": success(answer), **failures},
    }


def post_file(languages: Schema) -> Schema:
    """Return the operation that takes a file."""
    fields = {"file": {"type": "string", "format": "binary"}, **languages}
    schema = {"type": "object", "properties": fields, "required": ["file", "source", "target"]}
    answer = {"type": "object", "properties": {"translatedFileUrl": TEXT}, "required": ["translatedFileUrl"]}
    operation = post("Translate a .txt, .html or .srt file", fields, ["file", "source", "target"], answer)
    operation["requestBody"]["content"] = {"multipart/form-data": {"schema": schema}}
    return operation


def success(answer: Schema) -> Schema:
    """Return a response."""
    return {"description": "Done", "content": {"application/json": {"schema": answer}}}


def error(reason: str) -> Schema:
    """Return a response that says what is wrong."""
    schema = {"type": "object", "properties": {"error": TEXT}, "required": ["error"]}
    return {"description": reason, "content": {"application/json": {"schema": schema}}}
