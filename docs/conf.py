"""The documentation site, built by ``make docs``.

Markdown pages stay as they are in the repository; `_ext` has what turns them into a site without
a network: links (`repository`, `autolink`), formulas (`mathml`), the API reference (`reference`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from numpydoc.xref import DEFAULT_LINKS

import linkwise

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from autolink import class_names  # noqa: E402 (it is beside this file)

project = "linkwise"
author = "The linkwise developers"
project_copyright = "the linkwise developers, BSD-3-Clause"
release = version = linkwise.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "autolink",
    "gallery_scripts",
    "mathml",
    "reference",
    "repository",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_ext",
    "_templates",
    "gallery/**/*.py",
    "gallery/**/*.ipynb",
    "gallery/**/*.md5",
]
nitpicky = False  # types such as "array-like" lead nowhere
default_role = "literal"

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_block"]
myst_heading_anchors = 4
myst_fence_as_directive = ["math"]

# Docstrings
autosummary_generate = False  # `reference` writes the pages
autodoc_typehints = "none"  # the docstrings have the types
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # but for our own names
numpydoc_xref_aliases = {name: name for name in DEFAULT_LINKS} | class_names()

# Inventories of other projects, if somebody put them there: NAME.inv. Nothing is fetched.
INVENTORIES = {
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
    "matplotlib": "https://matplotlib.org/stable/",
}
_inventory_files = {name: HERE / "_inventories" / f"{name}.inv" for name in INVENTORIES}
intersphinx_mapping = {
    name: (INVENTORIES[name], str(path)) for name, path in _inventory_files.items() if path.exists()
}
if intersphinx_mapping:
    extensions.append("sphinx.ext.intersphinx")

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery_scripts.ReadingOrder",
    "subsection_order": "gallery_scripts.section_order",
    "reset_modules": ("matplotlib", "gallery_scripts.use"),
    "doc_module": ("linkwise",),
    "backreferences_dir": "gallery/uses",
    "reference_url": {"linkwise": None},
    "capture_repr": (),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1000,
    "thumbnail_size": (560, 240),  # most pictures are wide
    "write_computation_times": False,
    "matplotlib_animations": False,
    "parallel": min(os.cpu_count() or 1, 4),
    "plot_gallery": os.environ.get("LINKWISE_GALLERY", "run") == "run",
}

# The look
html_theme = "pydata_sphinx_theme"
html_title = f"linkwise {version}"
html_static_path = ["_static"]
html_css_files = ["linkwise.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
html_math_renderer = "mathml"
pygments_style = "default"
html_theme_options = {
    "logo": {
        "text": "linkwise",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "alt_text": "linkwise, the front page",
    },
    "navbar_align": "left",
    "navbar_end": ["theme-switcher", "version"],
    "header_links_before_dropdown": 7,
    "show_nav_level": 1,
    "navigation_depth": 3,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "search_bar_text": "Search the documentation",
}
html_sidebars = {
    "index": [],
    "benchmarks": [],
    "gallery/index": [],
    "project/*": ["sidebar-nav-bs"],
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"
