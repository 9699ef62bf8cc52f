"""How Sphinx makes the site: `make docs` writes it to build/site.

The pages are the Markdown files of the repository, so their links work there too. The folder of the sources is the
repository, and README.md is the first page.
"""

import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "docs" / "_extensions"), str(ROOT / "tools")]

project = "seqlm"
author = "The seqlm authors"
release = metadata.version("seqlm")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_click",
    "sphinxcontrib.mermaid",
    "repository_files",
    "generated_reference",
]
root_doc = "README"
_PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
include_patterns = [*_PAGES, "docs/**"]
exclude_patterns = [path.name for path in ROOT.iterdir() if path.name not in (*_PAGES, "docs")]

myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 4
myst_url_schemes = ["http", "https", "repository"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
add_module_names = False
smartquotes = False
mermaid_fullscreen = False
mermaid_height = "auto"
mermaid_include_elk = False
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = "seqlm"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False

_GUIDE = sorted(ROOT.glob("docs/guide/8-*.md"), key=lambda page: (page.stem[:3], page.stem.endswith("exercises")))
# Added to the README, in which GitHub would show it.
_CONTENTS = {
    "Begin": ["docs/tutorial", "docs/howto/installation", "docs/glossary", "docs/README"],
    "How to": [
        *["docs/explanation/results", "docs/howto/own-text", "docs/howto/experiments", "docs/howto/training"],
        *["docs/howto/use-from-python", "docs/howto/arpa", "docs/howto/large-texts", "docs/howto/sharing"],
        "docs/howto/troubleshooting",
    ],
    "The chapter": ["docs/guide/index", *(f"docs/guide/{page.stem}" for page in _GUIDE)],
    "Explanation": [f"docs/explanation/{name}" for name in ("ngrams", "transformer", "reproducibility")],
    "Reference": ["docs/reference/*"],
    "Project": ["CONTRIBUTING", "CHANGELOG"],
}
table_of_contents = "".join(
    "\n".join(["\n```{toctree}", ":hidden:", ":glob:", f":caption: {caption}\n", *pages, "```\n"])
    for caption, pages in _CONTENTS.items()
)
