# Two commands do everything: `make demo` and `make test`. `make quick` is for every day,
# `make test-all` for a change that lands.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FRAMEWORKS := .venv-frameworks
PURELIB := -c "import sysconfig; print(sysconfig.get_path('purelib'))"

.PHONY: demo test test-all quick lint types imports tests all-tests hidden-data growth weights browser \
	frameworks bench simulate studies docs dist clean

demo: $(VENV)/.demo
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

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local]'
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local,test,docs]'
	touch $@

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

imports: $(VENV)/.test
	$(BIN)/lint-imports

# Two workers on two cores; tests/conftest.py says which files stay together, and the longest come
# first. Further threads of a worker would take the core of the other one. Hundreds of processes
# load the same modules: compiled ones are kept even where the machine is set not to.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

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

clean:
	rm -rf $(VENV) $(FRAMEWORKS) site dist .pytest_cache .mypy_cache .ruff_cache
