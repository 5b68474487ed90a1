"""The pages for people, each complete in itself: nothing is fetched from anywhere else."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from rightly.serving.image_uploads import FORMATS
from rightly.serving.limits import Limits

NOTHING = "default-src 'none'; frame-ancestors 'none'"  # for answers that are no pages


@dataclass(frozen=True)
class Page:
    """A page and the policy that lets only its own script and style run."""

    text: str
    policy: str


def make_front_page(limits: Limits, *, adapts: bool = False, watches: bool = False) -> Page:
    """Where a person drops an image and sees what to make of the answer.

    Where the server adapts, it also charts what it adapts to, and where it watches for drift that.
    """
    text = _read_packaged("page.html").replace("{{body_bytes}}", str(limits.body_bytes))
    for name, is_so in (("adapts", adapts), ("watches", watches)):
        text = text.replace("{{" + name + "}}", "yes" if is_so else "no")
    return _add_policy(text)


def make_docs_page(schema: Mapping[str, Any], base: str) -> Page:
    """The API in words, tables and commands to copy, made from its OpenAPI schema."""
    parts = {
        "title": html.escape(schema["info"]["title"]),
        "description": html.escape(schema["info"]["description"]),
        "formats": html.escape(", ".join(FORMATS)),
        "routes": "".join(
            _render_route(method, path, operation, schema, base)
            for path, operations in schema["paths"].items()
            for method, operation in operations.items()
        ),
        "schemas": "".join(
            _render_schema(name, schema["components"]["schemas"][name])
            for name in schema["components"]["schemas"]
        ),
    }
    text = _read_packaged("docs.html")
    for name, value in parts.items():
        text = text.replace("{{" + name + "}}", value)
    return _add_policy(text)


def _read_packaged(name: str) -> str:
    return files("rightly.serving").joinpath(name).read_text(encoding="utf-8")


def _add_policy(text: str) -> Page:
    scripts = _hash_blocks(text, "script") or "'none'"
    styles = _hash_blocks(text, "style") or "'none'"
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; img-src blob: data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(text, policy)


def _hash_blocks(text: str, tag: str) -> str:
    blocks = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    digests = [hashlib.sha256(block.encode()).digest() for block in blocks]
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _render_route(
    method: str, path: str, operation: Mapping[str, Any], schema: Mapping[str, Any], base: str
) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(status)}</td><td>{html.escape(response['description'])}</td></tr>"
        for status, response in operation["responses"].items()
    )
    samples = "".join(
        f"<pre><code>{html.escape(sample['source'].replace('{base}', base))}</code></pre>"
        for sample in operation.get("x-codeSamples", [])
    )
    return (
        f"<section><h2><span class='method'>{method.upper()}</span> {html.escape(path)}</h2>"
        f"<p>{html.escape(operation.get('description') or operation.get('summary', ''))}</p>"
        f"{samples}{_render_example(operation)}"
        f"<table><thead><tr><th>Status</th><th>Meaning</th></tr></thead><tbody>{rows}</tbody>"
        "</table></section>"
    )


def _render_example(operation: Mapping[str, Any]) -> str:
    content = operation["responses"].get("200", {}).get("content", {})
    example = content.get("application/json", {}).get("example")
    if example is None:
        return ""
    text = html.escape(json.dumps(example, indent=2))
    return f"<p>Answers:</p><pre><code>{text}</code></pre>"


def _render_schema(name: str, schema: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{html.escape(key)}</code></td><td>{html.escape(_name_type(value))}</td>"
        f"<td>{html.escape(value.get('description', ''))}</td></tr>"
        for key, value in schema.get("properties", {}).items()
    )
    return (
        f"<section><h3 id='{html.escape(name)}'>{html.escape(name)}</h3>"
        f"<p>{html.escape(schema.get('description', ''))}</p>"
        "<table><thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></section>"
    )


def _name_type(value: Mapping[str, Any]) -> str:
    if "anyOf" in value:
        return " or ".join(_name_type(item) for item in value["anyOf"])
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if "enum" in value:
        return " or ".join(json.dumps(item) for item in value["enum"])
    if value.get("type") == "array":
        return f"list of {_name_type(value.get('items', {}))}"
    return str(value.get("type", "any"))
