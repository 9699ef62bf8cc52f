"""Renders a template as a page whose policy allows only the styles and scripts that the project puts into it."""

import base64
import hashlib
from collections.abc import Mapping, Sequence

import jinja2
from markupsafe import Markup


def render(template: str, sources: Sequence[str], **content: object) -> str:
    """Return a page as HTML. ``sources``: the files of styles and scripts that the template puts into it."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("seqlm.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["number"] = _number
    texts = {name: _source(environment, name) for name in sources}
    environment.globals |= {"inline": texts.__getitem__, "policy": _policy(texts)}
    return environment.get_template(template).render(**content)


def _source(environment: jinja2.Environment, name: str) -> Markup:
    """Return a file of styles or of a script, as it stands in a page."""
    assert environment.loader
    return Markup(environment.loader.get_source(environment, name)[0])


def _policy(sources: Mapping[str, str]) -> str:
    """Return the content security policy of a page: it loads nothing, and only these styles and scripts have effect."""
    hashes: dict[str, list[str]] = {"css": [], "js": []}
    for name, text in sources.items():
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        hashes[name.rpartition(".")[2]].append(f"'sha256-{digest}'")
    allowed = f"style-src {' '.join(hashes['css'])}; script-src {' '.join(hashes['js'])}"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _number(value: float | None, digits: int = 3) -> str:
    """Return a number for a table: thousands parted, infinite or missing ones as a dash."""
    if value is None:
        return "–"
    return (f"{value:,}" if isinstance(value, int) else f"{value:z,.{digits}f}").replace("-", "−")  # z: no "-0.00"
