"""Renders a template as a page whose policy allows only the styles and scripts that the project
puts into it."""

import base64
import hashlib
from collections.abc import Sequence

import jinja2
from markupsafe import Markup


def render(
    template: str, sources: Sequence[str], *, worker: bool = False, **content: object
) -> str:
    """Return a page as HTML.

    ``sources``: the files of its styles and scripts, in their order. A page with a ``worker`` makes
    it from text.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("seqlm.pipeline.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["number"] = _number
    texts = {name: _source(environment, name) for name in sources}
    found = {
        kind: [text for name, text in texts.items() if name.endswith(kind)]
        for kind in ("css", "js")
    }
    # The page loads nothing, and only these styles and scripts have effect.
    policy = (
        f"default-src 'none'; style-src {_hashes(found['css'])}; script-src {_hashes(found['js'])}"
    )
    policy += "; base-uri 'none'; form-action 'none'" + ("; worker-src blob:" if worker else "")
    environment.globals |= {"styles": found["css"], "scripts": found["js"], "policy": policy}
    environment.globals["inline"] = lambda name: _source(environment, name)
    return environment.get_template(template).render(**content)


def _source(environment: jinja2.Environment, name: str) -> Markup:
    """Return a file of styles or of a script, as it stands in a page."""
    assert environment.loader
    return Markup(environment.loader.get_source(environment, name)[0])


def _hashes(texts: Sequence[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def _number(value: float | None, digits: int = 3) -> str:
    """Return a number for a table: thousands parted, infinite or missing ones as a dash."""
    if value is None:
        return "–"
    return (f"{value:,}" if isinstance(value, int) else f"{value:z,.{digits}f}").replace(
        "-", "−"
    )  # z: no "-0.00"
