# Two commands do everything: `make demo` and `make test`. `make quick` is for every day,
# `make test-all` for a change that lands.
SHELL := /bin/bash
PYTHON ?= python3
comma := ,
VENV := .venv
BIN := $(VENV)/bin
FRAMEWORKS := .venv-frameworks
PURELIB := -c "import sysconfig; print(sysconfig.get_path('purelib'))"

.PHONY: demo test test-all quick lint types imports tests all-tests hidden-data growth weights browser \
	frameworks bench simulate studies docs dist sbom lock clean

demo: $(VENV)/.demo
	@echo 'Recorded answers first, then a small model answers on this machine (a few minutes).'
	$(BIN)/calibrant demo --out demo

# The types take a minute: they are looked at beside the tests, and told of below them.
BESIDE_TYPES = @$(MAKE) --no-print-directory types > $(VENV)/types.txt 2>&1 & types=$$!; \
	$(MAKE) --no-print-directory $(1); tests=$$?; \
	wait $$types; types=$$?; cat $(VENV)/types.txt; exit $$((tests || types))

test: lint imports
	$(call BESIDE_TYPES,tests)

# What continuous integration runs: the long tests too, with the real data and without them.
test-all: lint imports
	$(call BESIDE_TYPES,all-tests hidden-data growth)

# One line per package says that it goes on: a first install takes minutes.
INSTALL = $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -e '.[$(1)]' \
	| awk '/^Collecting/ {print "  " $$2; fflush()} /^Installing collected/ {print "  unpacking"; fflush()}'

$(VENV)/bin/python:
	@echo 'Making an environment in $(VENV).'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	@echo 'Installing calibrant and what it needs into $(VENV):'
	@set -o pipefail; $(call INSTALL,local)
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	@echo 'Installing calibrant with what its tests and pages need into $(VENV):'
	@set -o pipefail; $(call INSTALL,local$(comma)test$(comma)docs)
	@touch $@

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

imports: $(VENV)/.test
	$(BIN)/lint-imports

# Three workers on two cores: tests of servers, prompts and stopping wait for most of their time, and a
# third worker computes meanwhile. tests/conftest.py says which files stay together, and the longest come
# first. Further threads of a worker would take the core of the other one. Hundreds of processes
# load the same modules: compiled ones are kept even where the machine is set not to.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

HAS_BROWSER = @command -v chromedriver >/dev/null || \
	echo 'No browser: tests in one are skipped (make browser)'

tests: $(VENV)/.test
	$(HAS_BROWSER)
	$(PYTEST) -m 'not long'

all-tests: $(VENV)/.test weights $(if $(CI),browser) frameworks
	$(HAS_BROWSER)
	$(PYTEST)

# Tests that read the real data must skip, not fail, where there are none.
hidden-data: $(VENV)/.test
	CALIBRANT_DATA=/nonexistent $(PYTEST) tests -m data

# Whether the work of reading a text grows with its length: measured, so no test.
growth: $(VENV)/.test
	$(BIN)/python -m benchmarks growth

# What can be told in a minute and a half: no cluster, browser, model, framework or long test.
quick: $(VENV)/.test
	$(BIN)/ruff check .
	$(PYTEST) tests -m 'not slow and not long and not browser and not local and not data'

# The small model and the browser make more tests run; without them those tests are skipped, loudly.
weights: $(VENV)/.test
	-$(BIN)/calibrant models fetch

# Installs system packages: on the machines of continuous integration, or when asked for.
browser:
	-@command -v chromedriver >/dev/null || { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] \
		&& apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; }

# The evaluation frameworks, for tests that run them for real; they see the packages of the test
# environment and add their own.
frameworks: $(VENV)/.test
	-@$(MAKE) --no-print-directory $(FRAMEWORKS)/.ready

$(FRAMEWORKS)/.ready: tests/ecosystem/requirements.txt
	$(BIN)/python -m venv $(FRAMEWORKS)
	$(BIN)/python $(PURELIB) > "$$($(FRAMEWORKS)/bin/python $(PURELIB))/calibrant-tests.pth"
	$(FRAMEWORKS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	$(FRAMEWORKS)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

# `make simulate sem_ece` runs one part: the words behind it are its parts, not targets.
ifeq (simulate,$(firstword $(MAKECMDGOALS)))
PARTS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
$(eval $(PARTS):;@:)
endif

simulate: $(VENV)/.test
	$(BIN)/python -m simulations $(PARTS)

studies: $(VENV)/.test
	$(BIN)/python -m studies

docs: $(VENV)/.test
	$(BIN)/mkdocs build --strict

# Wheel and source package, checked; then the wheel alone, in a new environment outside this folder:
# the demo, and every example of the documentation.
FRESH := $(or $(TMPDIR),/tmp)/calibrant-dist
dist: $(VENV)/.test
	rm -rf dist $(FRESH)
	$(BIN)/python -m build --quiet
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv $(FRESH)
	$(FRESH)/bin/python -m pip install --quiet --disable-pip-version-check pytest \
		"$$(ls -d $(CURDIR)/dist/*.whl)[notebook,scale,bench-data,math,figures]"
	mkdir -p $(FRESH)/tests && cp -r README.md docs $(FRESH)/
	cp tests/support.py tests/test_docs.py $(FRESH)/tests/
	cd $(FRESH) && bin/calibrant demo --recorded --out demo
	cd $(FRESH) && CALIBRANT_DATA=$${CALIBRANT_DATA:-$(CURDIR)/../shared/data} \
		bin/python -m pytest -q -c /dev/null --rootdir $(FRESH) tests/test_docs.py

# What the wheel brings along, as a CycloneDX bill of materials, and what is known to be weak of it.
sbom: dist
	$(PYTHON) -m venv $(FRESH)-tools
	$(FRESH)-tools/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom pip-audit
	$(FRESH)-tools/bin/cyclonedx-py environment $(FRESH)/bin/python --output-reproducible -o dist/sbom.json
	$(FRESH)-tools/bin/pip-audit --path "$$($(FRESH)/bin/python $(PURELIB))"

# The versions that contributors share: pip install -r requirements.lock, then -e . without its dependencies.
lock:
	$(PYTHON) -m venv $(FRESH)-lock
	$(FRESH)-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(FRESH)-lock/bin/uv pip compile pyproject.toml --universal --python-version 3.11 --upgrade --quiet \
		--extra local --extra test --extra docs --extra bench --no-annotate --no-header -o requirements.lock

clean:
	rm -rf $(VENV) $(FRAMEWORKS) site dist .pytest_cache .mypy_cache .ruff_cache
