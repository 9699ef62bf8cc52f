"""Renders templates: texts, and pages whose policy allows only the styles and scripts that the
project puts into them."""

import base64
import hashlib
from collections.abc import Sequence
from html import unescape
from importlib.resources import files
from inspect import getmembers, isfunction

import jinja2
from markupsafe import Markup

from seqlm.core.progress import count_noun
from seqlm.pipeline.report import formats


def render(template: str, **content: object) -> str:
    """A template with its variables filled in; only HTML is escaped."""
    return environment().get_template(template).render(**content)


def render_page(
    template: str, sources: Sequence[str], *, worker: bool = False, **content: object
) -> str:
    """A page as HTML.

    ``sources``: its style sheets and scripts, in their order. ``worker``: the page may start a
    worker from a blob.
    """

    def source(name: str) -> Markup:
        return Markup(files(__package__).joinpath("templates", name).read_text("utf-8"))

    styles = [source(name) for name in sources if name.endswith("css")]
    scripts = [source(name) for name in sources if name.endswith("js")]
    # The page loads nothing, and only these styles and scripts have effect.
    policy = f"default-src 'none'; style-src {_hashes(styles)}; script-src {_hashes(scripts)}"
    policy += "; base-uri 'none'; form-action 'none'" + ("; worker-src blob:" if worker else "")
    frame = {"styles": styles, "scripts": scripts, "policy": policy, "inline": source}
    return render(template, **frame, **content)


def environment() -> jinja2.Environment:
    """Where templates, the filters that they use, and the rules of escaping are known."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=jinja2.select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    # Every function of formats.py is a filter.
    environment.filters |= dict(getmembers(formats, isfunction))
    environment.filters |= {"count_noun": count_noun, "unescape": unescape}
    return environment


def _hashes(texts: Sequence[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)
