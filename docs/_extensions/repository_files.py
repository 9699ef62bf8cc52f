"""Links from the pages to files of the repository: each leads to a page of the site that shows this file.

A number's link, such as table.csv#model=lstm&test_bits:.2f, leads to the row that holds it. A link to a file that does
not exist is a warning.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

import doc_values

_log = logging.getLogger(__name__)
_LINK = re.compile(r"(?P<image>!\[[^]]*)?\]\((?P<path>[^)\s#:]+)(?:#(?P<where>(?:[^()\s]|\(\w+\))*))?\)")
_SCHEME = "repository:"
# Where GitHub shows the runs of a workflow.
_OF_GITHUB = "../../actions/"


def mark_links(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give each link to a file that is no page the scheme of this extension, and the README its table of contents."""
    page = Path(app.env.doc2path(docname))

    def mark(link: re.Match[str]) -> str:
        path = Path(os.path.normpath(page.parent / link["path"]))
        if link["image"] or path.suffix == ".md" or link["path"].startswith(_OF_GITHUB):
            return link[0]
        if not path.is_file():
            _log.warning("%s: no such file", link["path"], location=docname)
            return link[0]
        return f"]({_SCHEME}{path.relative_to(app.srcdir).as_posix()}#{_place(path, link['where'])})"

    source[0] = _LINK.sub(mark, source[0])
    if docname == app.config.root_doc:
        source[0] = source[0].replace("(../../actions/", "(https://github.com/") + app.config.table_of_contents


def _place(path: Path, where: str | None) -> str:
    """Return the anchor of the row that holds a value, or an empty text if there are several."""
    if not where:
        return ""
    if path.suffix == ".json":
        return where.rpartition(":")[0]
    *choices, column = where.rpartition(":")[0].split("&")
    return "" if "(" in column else f"row-{doc_values.rows_of(path, choices).index[0]}"


def resolve_links(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Let each marked link lead to the page of its file."""
    for link in doctree.findall(nodes.reference):
        if (target := link.get("refuri", "")).startswith(_SCHEME):
            path, _, anchor = target.removeprefix(_SCHEME).partition("#")
            app.env.linked_files.add(path)  # type: ignore[attr-defined]
            link["refuri"] = app.builder.get_relative_uri(docname, path) + (f"#{anchor}" if anchor else "")


def file_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each file that a page links to."""
    for name in sorted(app.env.linked_files):  # type: ignore[attr-defined]
        path = Path(app.srcdir, name)
        show = {".csv": _table, ".json": _values, ".ipynb": _notebook}.get(path.suffix, _text)
        yield name, {"title": path.name, "body": f"<h1>{name}</h1>\n{show(app, path)}"}, "page.html"


def _table(_: Sphinx, path: Path) -> str:
    table = pd.read_csv(path, dtype=str, keep_default_na=False, comment="#")
    return _rows(list(table), [(f"row-{place}", list(row)) for place, row in enumerate(table.to_numpy())])


def _values(_: Sphinx, path: Path) -> str:
    def flat(value: Any, key: str) -> Iterator[tuple[str, list[str]]]:
        if isinstance(value, dict | list):
            for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
                yield from flat(inner, f"{key}.{name}".lstrip("."))
        else:
            yield key, [key, str(value)]

    return _rows(["key", "value"], list(flat(json.loads(path.read_text(encoding="utf-8")), "")))


def _rows(head: list[str], rows: list[tuple[str, list[str]]]) -> str:
    heading = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = ""
    for anchor, cells in rows:
        body += f'<tr id="{escape(anchor)}">{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>\n'
    return f'<div class="scrolls"><table class="repository-file"><tr>{heading}</tr>\n{body}</table></div>'


def _notebook(app: Sphinx, path: Path) -> str:
    shown = ""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        shown += _highlighted(app, "".join(cell["source"]), "python" if cell["cell_type"] == "code" else "text")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                shown += f'<img alt="Figure" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
            elif "text/html" in data:
                shown += f'<div class="scrolls">{"".join(data["text/html"])}</div>'
            elif written := "".join(data.get("text/plain", output.get("text", []))):
                shown += _highlighted(app, written, "text")
    return shown


def _text(app: Sphinx, path: Path) -> str:
    language = {".py": "python", ".yaml": "yaml", ".toml": "toml"}.get(path.suffix, "text")
    return _highlighted(app, path.read_text(encoding="utf-8"), language)


def _highlighted(app: Sphinx, text: str, language: str) -> str:
    return str(app.builder.highlighter.highlight_block(text, language))  # type: ignore[attr-defined]


def number_formulas(_: Sphinx, doctree: nodes.document) -> None:
    """Leave displayed formulas as they are: they have the book's numbers, which no environment may enclose."""
    for formula in doctree.findall(nodes.math_block):
        formula["no-wrap"] = formula["nowrap"] = True
        formula[:] = [nodes.Text(rf"\[{formula.astext()}\]")]


def begin(app: Sphinx) -> None:
    """Begin without linked files."""
    app.env.linked_files = set()  # type: ignore[attr-defined]


def finish(app: Sphinx, error: Exception | None) -> None:
    """Make the first page the one that a server shows for the folder."""
    if error is None and app.builder.name == "html":
        shutil.copyfile(Path(app.outdir, f"{app.config.root_doc}.html"), Path(app.outdir, "index.html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the functions above."""
    app.add_config_value("table_of_contents", "", "env")
    app.connect("builder-inited", begin)
    app.connect("source-read", mark_links)
    app.connect("doctree-read", number_formulas)
    app.connect("doctree-resolved", resolve_links)
    app.connect("html-collect-pages", file_pages)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": False}
