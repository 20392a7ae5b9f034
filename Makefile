# Everything sets itself up: a machine with Python 3.11+ and make is enough.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
MINIMUM := .venv-minimum
RELEASE := .venv-release
DOCS := $(VENV)/.docs
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' src/linkwise/_version.py)
SITE = build/docs/$(VERSION)
# A test process for every core; each begins with a share of the files and takes over from slower ones.
PARALLEL := -n logical --maxprocesses 8 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo demo-page test lint kernels pytest coverage fuzz test-minimum docs docs-quick docs-serve dist licences papers papers-full clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml src/linkwise/_version.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "linkwise needs Python 3.11 or newer; run: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(STAMP) ## find segments of customers without and with 30 pairs; writes a report and pictures
	$(PY) -m linkwise warm-up auto ncut signed
	$(PY) -m linkwise.demo

demo-page: $(STAMP) ## the annotation page on built-in data, whose truth shows the gain
	@mkdir -p demo-output
	$(PY) -m linkwise datasets digits -o demo-output/digits.csv --quiet
	$(PY) -m linkwise serve demo-output/digits.csv -k 10 --truth class --image 8x8 --no-scale

test: $(STAMP) ## everything CI runs: ruff, codespell, mypy, the site, pytest
	@$(MAKE) --no-print-directory -j2 lint kernels
	@$(MAKE) --no-print-directory docs
	@$(MAKE) --no-print-directory pytest

lint: $(STAMP) ## ruff, codespell and mypy
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/codespell
	$(VENV)/bin/mypy

# Compiled once for all test processes, which read them from the cache beside the source.
kernels: $(STAMP) ## compile what most tests need
	$(PY) -m linkwise warm-up

pytest: $(STAMP) ## the tests alone
	$(PY) -m pytest -q $(PARALLEL)

coverage: $(STAMP) ## the tests, and the lines that none of them reaches
	$(PY) -m pytest -q $(PARALLEL) --cov --cov-report=term:skip-covered

SECONDS ?= 900
fuzz: $(STAMP) ## random fits of all methods for SECONDS=900; prints the seed and a small call of what fails
	$(PY) tests/fuzz.py --seconds $(SECONDS)

test-minimum: ## the tests on the oldest supported versions of the dependencies
	$(PYTHON) -m venv $(MINIMUM)
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check \
	  'numpy==1.26.*' 'scipy==1.13.*' 'scikit-learn==1.6.*' 'numba==0.60.*' 'joblib==1.3.*' 'threadpoolctl==3.5.*' \
	  'matplotlib==3.9.*' 'pandas==2.2.*' 'pytest==8.2.*' 'pytest-xdist==3.6.*' 'hypothesis==6.100.*' 'psutil==6.0.*' \
	  'jinja2==3.1.*' 'click==8.1.*' 'tqdm==4.66.*' 'starlette==0.40.*' 'uvicorn==0.30.*' 'anyio==4.10.*' 'httpx==0.27.*' \
	  'pyarrow==16.*' 'anndata==0.11.*' 'openpyxl==3.1.*' 'pyamg==5.3.*' 'dask[array]==2024.8.*' 'distributed==2024.8.*'
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@# Kernels apart: another Numba would overwrite those of the usual environment.
	NUMBA_CACHE_DIR=$(CURDIR)/$(MINIMUM)/kernels $(MINIMUM)/bin/python -m linkwise warm-up
	NUMBA_CACHE_DIR=$(CURDIR)/$(MINIMUM)/kernels $(MINIMUM)/bin/python -m pytest -q $(PARALLEL)

$(DOCS): $(STAMP)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

docs: $(DOCS) ## the documentation site in build/docs, its gallery run, its links checked
	rm -rf $(SITE)
	@# One thread a script: two scripts run at a time, and the times that they print are of one core.
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(VENV)/bin/sphinx-build -W --keep-going -q -j 2 -d build/doctrees -b html docs $(SITE)
	$(PY) tools/check_site.py $(SITE)
	@echo '<meta http-equiv="refresh" content="0; url=$(VERSION)/">' > build/docs/index.html

docs-quick: export LINKWISE_GALLERY = skip
docs-quick: docs ## the same without running the gallery

docs-serve: ## show the site on this machine, at http://127.0.0.1:8000; builds it if it is not there
	@[ -e build/docs/index.html ] || $(MAKE) --no-print-directory docs
	$(PYTHON) -m http.server 8000 --bind 127.0.0.1 --directory build/docs

dist: $(STAMP) ## wheel and sdist, with their contents checked, twine, and the demo in a clean environment
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check build twine
	rm -rf dist
	$(RELEASE)/bin/python -m build --outdir dist
	$(RELEASE)/bin/python -m twine check --strict dist/*
	$(PY) tools/check_dist.py dist

licences: $(STAMP) ## the licences of all dependencies
	@$(PY) tools/licences.py

papers: $(STAMP) ## the experiments of the five papers at a reduced size, compared with docs/papers.md, under half an hour
	$(PY) benchmarks/papers/run_all.py --fresh --jobs 2

papers-full: $(STAMP) ## the same at the papers' own size, for hours
	$(PY) benchmarks/papers/run_all.py --full

clean: ## remove the environments and caches
	rm -rf $(VENV) $(MINIMUM) $(RELEASE) .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-output build dist
