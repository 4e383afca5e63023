# The kit's own targets. The two that matter: `make grade` and `make test`.
#
#   make grade                      set everything up, grade the reference solution
#   make grade SUBMISSION=path      grade a folder or an archive (more options: ARGS="--help")
#   make test                       the tests of the kit and of the solution, in minutes
#   make test-rest                  the slow ones that it leaves out, in half an hour
#   make quick                      those that take no time, in a minute
#
# Needs Python 3.10 or newer with venv, and make. Everything else comes from the package index.

# `make help` lists all of them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SUBMISSION ?= solution
PROFILE ?= default
DEVICE ?= auto
ARGS ?=
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev
READY_BENCH := $(VENV)/.ready-bench

# Builds the solution's library, for a real GPU if there is one.
all: $(READY)
	@$(MAKE) -C solution PYTHON=$(CURDIR)/$(BIN)/python DEVICE=$(DEVICE)

# Grades one submission and prints the report.
grade: $(READY)
	@$(BIN)/grader grade "$(SUBMISSION)" --profile $(PROFILE) --device $(DEVICE) $(ARGS)

# Two at a time, on both cores: a BLAS with two threads would only wait for the other test.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal

# Runs the tests: those of students on the solution, then the kit's own; of the slow ones a few.
test: $(READY_DEV) all
	cd solution && ../$(BIN)/python -m pytest -q tests
	$(PYTEST) --few

# Runs the slow tests that this leaves out; of many like cases a share.
test-rest: $(READY_DEV) all
	$(PYTEST) --rest

# Runs all tests with all cases: every submission of the catalogue, every seed. Before a release.
test-all: $(READY_DEV) all
	cd solution && ../$(BIN)/python -m pytest -q tests
	$(PYTEST) --all

# Runs the quick tests alone, of every room, in a minute or two.
quick: $(READY_DEV) all
	$(PYTEST) -m "not slow"

# Style and types of Python, format of C++.
lint: $(READY_DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=solution/python:emulator $(BIN)/lint-imports
	git ls-files 'emulator/*.cc' 'emulator/*.h' 'solution/*.cc' 'solution/*.h' 'solution/*.cu' 'solution/*.cuh' 'grader/*.cc' 'grader/*.h' 'grader/*.cu' | xargs $(BIN)/clang-format --dry-run -Werror

# Writes the code in the form that lint wants.
format: $(READY_DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	git ls-files 'emulator/*.cc' 'emulator/*.h' 'solution/*.cc' 'solution/*.h' 'solution/*.cu' 'solution/*.cuh' 'grader/*.cc' 'grader/*.h' 'grader/*.cu' | xargs $(BIN)/clang-format -i

# Regenerates assignment/ from solution/.
release: $(READY)
	$(BIN)/grader release

# Writes the students' handout and the instructor's guide to build/handout/, as HTML and PDF.
handout: $(READY_DEV)
	$(BIN)/grader handout
	$(BIN)/grader handout --guide

# Builds the site to build/docs/html/: handout, guide, findings, catalogues, API. Warnings are errors.
docs: $(READY_DEV)
	$(BIN)/python docs/make_site.py

# Asks the network whether the site's links to the outside are alive.
docs-links: $(READY_DEV)
	$(BIN)/python docs/make_site.py --links

# Builds, checks and measures everything on a real GPU, and writes handout/results.*.
gpu-check: $(READY_DEV)
	bash tools/gpu_check.sh

# Builds the emulated GPU for arm64 and runs its tests under qemu-user; says what to install.
arm64-check: $(READY_DEV)
	$(BIN)/python tools/arm64_check.py

# Measures the solution on this machine for 100 seconds, and writes build/bench/bench.html (ARGS="--quick").
bench: $(READY_BENCH) all
	@$(BIN)/grader bench $(ARGS)

# Resolves the dependencies of pyproject.toml anew into constraints.txt.
lock: | $(BIN)/python
	$(BIN)/pip install -q uv
	$(BIN)/uv pip compile -q --universal --python-version 3.10 --all-extras --no-header \
	  --no-annotate pyproject.toml -o constraints.txt

# Lists the targets.
help:
	@awk '/^# / && !said { said = substr($$0, 3) } !/^#/ { if (said && /^[a-z0-9-]+:/) \
	  printf "make %-12s %s\n", substr($$1, 1, index($$1, ":") - 1), said; said = "" }' Makefile

# Removes what was built; the virtual environment stays.
clean:
	$(MAKE) -C solution clean
	rm -rf reports

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "Python 3.10 or newer is needed; hint: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "Python's venv is missing; hint: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .
	@command -v g++ >/dev/null || command -v clang++ >/dev/null || command -v c++ >/dev/null || \
	  { echo "no C++ compiler here: taking the one that the ziglang package ships"; \
	    $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[compiler]'; }
	@touch $@

$(READY_DEV): $(READY)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(READY_BENCH): $(READY)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

.PHONY: all help grade test test-rest test-all quick bench lint format release handout docs docs-links gpu-check arm64-check lock clean
