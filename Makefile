# Every target works in an environment of its own, made here, first on PATH.
PYTHON ?= python3
# Where pip finds a build of PyTorch other than PyPI's: make install TORCH_INDEX=URL
TORCH_INDEX ?=
VENV := .venv
# An environment works only in the folder where it was made, which its stamp names.
STAMP := $(VENV)/installed
IS_MOVED := $(shell cd $(VENV) 2>/dev/null && [ -s installed ] && [ "$$(cat installed)" != "$$(pwd -P)" ] && echo yes)
WRITE_STAMP = @cd $(VENV) && pwd -P > installed
PINS := requirements-hashed.txt
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
SHELL := /bin/sh

.DEFAULT_GOAL := help
# Without a recipe or a file: what depends on it is always made again.
moved:

.PHONY: moved help install install-hashed unlock repro restore preset smoke diff regenerate docs picture test test-all verify mutants lint clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

install: $(STAMP) ## make .venv and install the pinned packages

$(STAMP): pyproject.toml $(PINS) $(if $(IS_MOVED),moved)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "error: $(PYTHON) is $$($(PYTHON) --version 2>&1): Python 3.11 or newer is needed; name one with make PYTHON=..." >&2; exit 5; }
	$(PYTHON) -m venv $(if $(IS_MOVED),--clear) $(VENV)
	@# The pins without their hashes: another build of the same version of PyTorch has another hash.
	sed -n 's/ *\\$$//; /^[a-z0-9].*==/p' $(PINS) > $(VENV)/pins.txt
	$(if $(TORCH_INDEX),$(VENV)/bin/python -m pip install --quiet --no-compile --no-deps --index-url '$(TORCH_INDEX)' \
	    --constraint $(VENV)/pins.txt torch)
	$(VENV)/bin/python -m pip install --quiet --no-compile --constraint $(VENV)/pins.txt --editable '.[pipeline,test]'
	$(WRITE_STAMP)

# A build of PyTorch from TORCH_INDEX has other hashes than those of PyPI and needs none of CUDA's packages.
install-hashed: ## make .venv and install the pinned packages, each checked against its SHA-256
	$(PYTHON) -m venv $(if $(IS_MOVED),--clear) $(VENV)
	awk '/^[a-z0-9]/ {keep = !/^(torch|triton|cuda-[a-z]+|nvidia-[a-z0-9-]+)==/} keep' $(PINS) > $(VENV)/hashed.txt
	$(VENV)/bin/python -m pip install --quiet --no-compile --require-hashes --requirement $(if $(TORCH_INDEX),$(VENV)/hashed.txt,$(PINS))
	$(if $(TORCH_INDEX),$(VENV)/bin/python -m pip install --quiet --no-compile --no-deps --index-url '$(TORCH_INDEX)' \
	    "$$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' $(PINS))")
	$(VENV)/bin/python -m pip install --quiet --no-compile --no-deps --editable .
	$(WRITE_STAMP)

# DVC killed while it writes its table of locks leaves half a file, and then refuses to run.
unlock:
	@test ! -e .dvc/tmp/rwlock || $(VENV)/bin/python -m json.tool .dvc/tmp/rwlock >/dev/null 2>&1 || rm -f .dvc/tmp/rwlock

SHOW_RESULT = sed '/^All models:/,$$d' reports/summary.txt && echo "All models: reports/summary.txt. The page: reports/index.html"

repro: install unlock ## run the pipeline, print the most important models, and name the files with the rest
	@git rev-parse --git-dir >/dev/null 2>&1 || { \
	    echo "error: DVC works in a Git repository, and this folder is not one. Type these, then make repro again:" >&2; \
	    echo "  git init && git add . && git commit -m 'Start from a download'" >&2; exit 5; }
	@python tools/restore.py --check
	@python stages/configure.py --check
	@# The warm-up runs during the first stages, which leave a processor idle.
	@python tools/warm_up.py >/dev/null 2>&1 & python tools/side_by_side.py && dvc repro
	@python tools/check_lock.py --prune
	@$(SHOW_RESULT)
	@echo "To type dvc and python yourself: . $(VENV)/bin/activate"

restore: install unlock ## go back to the last commit after a failed or killed experiment; sets your changes aside
	@python tools/restore.py

NAME ?=
ARGS ?=
preset: install unlock ## run an experiment with a preset: make preset NAME=quick ARGS='-S download.corpus=my.txt'
	@python tools/preset.py $(NAME) $(ARGS)
	@$(if $(NAME),$(SHOW_RESULT))

smoke: install ## try the whole pipeline in a copy, on the sample, with small settings (a minute or two)
	python tools/smoke.py

REV ?= main
diff: install ## compare the results with those of another revision: make diff REV=main
	python tools/compare.py $(REV)

regenerate: install ## after dvc repro, write all files again that are made from settings, code and results (needs Chromium)
	python tests/helpers/default_params.py
	python tools/doc_values.py
	pytest --numprocesses=0 --nbmake --overwrite docs/notebook.ipynb
	$(MAKE) picture

docs: install ## write the documentation as a site to build/site, and check its links
	python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env -c docs . build/site

CHROMIUM ?= chromium
picture: install ## draw docs/page.png, the README's picture of the page (needs Chromium)
	$(CHROMIUM) --headless --no-sandbox --hide-scrollbars --window-size=1280,710 --screenshot=docs/page.png reports/index.html

test: install lint ## run the tests (minutes)
	pytest

test-all: install lint ## run the tests, the slow ones too
	pytest -m '' --hypothesis-profile=long

verify: install ## run the pipeline from scratch, without the run cache, and compare every hash with dvc.lock
	python tools/verify.py

ONLY ?= *
mutants: install ## see which small changes of the code no test notices (hours): make mutants ONLY='seqlm.pipeline.sine.*'
	$(VENV)/bin/python -m pip install --quiet --constraint $(VENV)/pins.txt --editable '.[pipeline,mutants]'
	-OMP_NUM_THREADS=1 mutmut run '$(ONLY)'
	@mutmut results

lint: install ## check style, types, imports and dependencies
	ruff check .
	ruff format --check .
	mypy
	mypy benchmarks  # apart: some have the name of a stage
	lint-imports
	deptry src stages tools

clean: ## remove the environment, caches and checkpoints, not the results
	rm -rf checkpoints mutants $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
