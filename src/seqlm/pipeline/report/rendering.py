"""Renders a template as a page whose policy allows only the styles and scripts that the project
puts into it."""

import base64
import hashlib
from collections.abc import Sequence

import jinja2
from markupsafe import Markup

from seqlm.pipeline.report import formats


def render(
    template: str, sources: Sequence[str], *, worker: bool = False, **content: object
) -> str:
    """A page as HTML.

    ``sources``: its style sheets and scripts, in their order. ``worker``: the page may start a
    worker from a blob.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("seqlm.pipeline.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["number"] = formats.number
    styles = [_source(environment, name) for name in sources if name.endswith("css")]
    scripts = [_source(environment, name) for name in sources if name.endswith("js")]
    # The page loads nothing, and only these styles and scripts have effect.
    policy = f"default-src 'none'; style-src {_hashes(styles)}; script-src {_hashes(scripts)}"
    policy += "; base-uri 'none'; form-action 'none'" + ("; worker-src blob:" if worker else "")
    environment.globals |= {"styles": styles, "scripts": scripts, "policy": policy}
    environment.globals["inline"] = lambda name: _source(environment, name)
    return environment.get_template(template).render(**content)


def _source(environment: jinja2.Environment, name: str) -> Markup:
    """A style sheet or script for use in a page."""
    assert environment.loader
    return Markup(environment.loader.get_source(environment, name)[0])


def _hashes(texts: Sequence[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)
