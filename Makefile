# Two commands from a fresh clone: make demo, make test. Needs Python 3.11+ and a package index.
PYTHON ?= python3
BIN := .venv/bin
# Where it is set, each command that a test starts compiles the whole package again.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo model test test-all test-engines lint docs lock translations bench mutants faults wheel \
	release clean

demo: model
	$(BIN)/qkvsearch demo

# MiniLM, in which the words of a query attend to each other. Without an index the demo goes on.
model: .venv/installed
	@$(BIN)/qkvsearch model fetch minilm >/dev/null || \
		echo 'The demo goes on without MiniLM; `make model` tries again.' >&2

test: lint
	$(BIN)/python -m pytest -q -n auto --dist loadgroup

# And the tests marked `slow`: a browser, faults, Milvus, tuning, thousands of messy files.
test-all: test
	$(BIN)/python -m pytest -q -n auto --dist loadgroup -m slow

# The tests marked `cluster`: they start a Spark cluster on this machine.
test-engines: .venv/installed-test
	$(BIN)/python -m pytest -q -m cluster

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	! [ -x $(BIN)/hadolint ] || $(BIN)/hadolint Dockerfile

# The documentation as a site, build/docs/index.html. Once its packages are there, without a network.
# With --quiet, --strict would see no warnings. The variable hides when the theme's support ends, which
# mkdocs.yml says.
docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# What the course says, gathered for translation in qkvsearch/lessons/locale, and compiled.
translations: .venv/installed-test
	$(BIN)/python docs/translations.py

# Ours beside the peers, kept in benchmarks/results; then docs/figures.md and the README's table.
# Needs QKVSEARCH_DATA, a folder of data sets. A script alone: make bench ONLY=text_search:ted
bench: .venv/installed-bench
	$(BIN)/python benchmarks $(ONLY:%=--only %)

# How many of N small faults in the code, drawn with SEED, the tests find (docs/trust.md).
N ?= 150
SEED ?= 0
mutants: .venv/installed-test
	$(BIN)/python benchmarks/mutants.py $(N) $(SEED)

# Kills, damage, full disks, writers at once, fuzzing: an hour (docs/trust.md).
# One part or one trial: make faults ONLY=damage:17. A hundredth of it all: SHARE=.01.
SHARE ?= 1
faults: .venv/installed-test
	$(BIN)/python -m tests.faults --seed $(SEED) --share $(SHARE) $(ONLY:%=--only %)

# What CI installs: the versions of constraints.txt, each file of theirs by its hash.
lock: .venv/installed
	$(PIP) uv
	printf 'pip\nsetuptools\neditables\n' | $(BIN)/uv pip compile --quiet --universal \
		--python-version 3.11 --generate-hashes --no-annotate --custom-compile-command 'make lock' \
		--constraint constraints.txt --output-file .ci/requirements.lock \
		$(addprefix --extra ,encoders test browser milvus spark docs) pyproject.toml -

# The wheel as people get it: alone in an environment of its own, used from another folder.
wheel:
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet --constraint constraints.txt build/wheel/*.whl
	cd build/wheel && venv/bin/qkvsearch -q demo >demo.txt
	cd build/wheel && venv/bin/qkvsearch -w sample:videos search bread --format json | grep -q '"id"'
	cd build/wheel && venv/bin/python -c 'import qkvsearch; assert "build" in qkvsearch.__file__'

# A wheel and a source distribution in dist/, checked, and the licences of what they need.
release: .venv/installed-test
	rm -rf dist
	$(PIP) twine
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python docs/licences.py encoders web

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade pip setuptools
	$(PIP) --editable '.[encoders]'
	touch $@

.venv/installed-test: .venv/installed
	$(PIP) --editable '.[test]'
	touch $@

.venv/installed-docs: .venv/installed
	$(PIP) --editable '.[docs]'
	touch $@

.venv/installed-bench: .venv/installed
	$(PIP) --editable '.[bench]'
	touch $@

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
