# Everything runs in .venv, which is made when it is missing and renewed when pyproject.toml changes.
# Only make and a Python from 3.11 to 3.14 are needed:  make demo,  or  make test PYTHON=python3.12

PYTHON ?= python3
# Worker processes of the test runs; 0 is none beside pytest's own. And what `make test` runs.
JOBS ?= 2
TESTS ?= tests
# How many random programs `make fuzz` runs, each time others, and `make njit-programs`, from which
# number on.
N ?= 1000
FIRST ?= 10000
# What is measured, and with which options, e.g. SUITES=eager BENCH="--threads 2 --json eager.json".
SUITES ?= eager transforms jit njit compile
BENCH ?=

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet install
INSTALLED := $(VENV)/.installed

.PHONY: help demo test native native-off native-forced bounds lowest lint peers peers-compared \
	peers-torch distributed bench examples scripts autograd-suite torch-suite torch-samples array-api build docs \
	wheel-test clean fuzz njit-programs nightly faults
.DELETE_ON_ERROR:

help:
	@echo "make demo      look at a tape, fit a small model, compile the fit"
	@echo "make test      all tests that need no other autodiff library"
	@echo "make native    tests of behaviour without native code, and with all that there is"
	@echo "make bounds    derivatives of @njit functions whose indices Numba checks"
	@echo "make lowest    those, and seeds and operations, with the lowest versions that are allowed of"
	@echo "               NumPy, Numba and SciPy"
	@echo "make lint      ruff and mypy"
	@echo "make peers     tests against PyTorch, JAX, autograd and nutpie (installs them), and the"
	@echo "               behavioural tests run on PyTorch itself: they state its rules"
	@echo "make distributed"
	@echo "               tests on clusters of Dask, workers of joblib and under MPI (installs them)"
	@echo "make fuzz      random programs against each other and the peers: N=100000 for a long run"
	@echo "make njit-programs"
	@echo "               random programs that Numba compiles, every derivative against the others and"
	@echo "               differences: N=20000 for a long run, FIRST is the number of the first"
	@echo "make nightly   every operation with every kind of array in every way to run it, and the"
	@echo "               programs of the benchmark that JAX compiles for long"
	@echo "make faults    interrupts at N random moments of each kind of work, N=10000 for a long run"
	@echo "make bench     the figures of the documents (installs the same and CasADi)"
	@echo "make torch-suite TORCH_SOURCE=/path/to/pytorch"
	@echo "               those of PyTorch's own tests that need public autograd on the CPU"
	@echo "make torch-samples"
	@echo "               the samples of PyTorch's own tests of its operators"
	@echo "make array-api SUITE=/path/to/array-api-tests"
	@echo "               the conformance suite of the Python array API standard"
	@echo "make autograd-suite"
	@echo "               HIPS autograd's own tests and examples, which this downloads"
	@echo "make examples  run examples/, the code blocks of README.md and docs/, the docstring examples"
	@echo "make build     the wheel and the sdist, in dist/"
	@echo "make wheel-test"
	@echo "               tests of the wheel in an environment of its own"
	@echo "make docs      the site, in site/index.html (installs mkdocs-material)"
	@echo "make clean     remove .venv and every cache"

demo: $(INSTALLED)
	$(PY) -m bench.demo

# Beside other tests, threads of BLAS wait for a processor: three equations took 10 ms to solve.
test native-off native-forced bounds peers-compared peers-torch: export OPENBLAS_NUM_THREADS := 1

test: $(INSTALLED)-dev
	$(PY) -m pytest -n $(JOBS) --slow -m "not peer" --ignore=tests/peers $(TESTS)

# The same results without native code, and with each call by native code that can be.
BEHAVIOUR := tests/test_seeds*.py tests/test_tensor*.py tests/functions tests/dispatch tests/tape \
	tests/autograd/test_engine.py
native: native-off native-forced
native-off native-forced: native-%: $(INSTALLED)-dev
	$(PY) -m pytest -n $(JOBS) --native=$* $(BEHAVIOUR)

# What a program allocates and frees differs where each index is checked.
BOUNDS := $(addprefix tests/njit/test_,nopython_calls.py nopython_matrices.py check_sinking.py \
	tabulation.py)
bounds: $(INSTALLED)-dev
	NUMBA_BOUNDSCHECK=1 $(PY) -m pytest -n $(JOBS) $(BOUNDS)

# In an environment of its own; `numba>=0.66` becomes `numba==0.66`.
LOWEST := build/lowest
READ_LOWEST := import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*(x.replace(">=", "==") for x in project["dependencies"]))
lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install --editable . \
		$$($(PYTHON) -c '$(READ_LOWEST)') pytest pytest-xdist hypothesis mpmath
	$(LOWEST)/bin/python -m pytest -n $(JOBS) --slow -m "not peer" $(TESTS_LOWEST)
	rm -r $(LOWEST)
TESTS_LOWEST := tests/njit tests/test_seeds*.py tests/functions

lint: $(INSTALLED)-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

peers: peers-compared peers-torch
peers-compared: $(INSTALLED)-dev $(INSTALLED)-peers
	$(PY) -m pytest -n $(JOBS) --slow tests/peers
peers-torch: $(INSTALLED)-dev $(INSTALLED)-peers
	$(PY) -m pytest -n $(JOBS) --library=torch -m "not tapegrad_only" --ignore=tests/peers

distributed: $(INSTALLED)-dev $(INSTALLED)-distributed-test
	$(PY) -m pytest tests/distributed tests/test_distributed_page.py tests/test_documents.py \
		tests/transforms/test_pickling.py -k "distributed or joblib"

fuzz: $(INSTALLED)-dev $(INSTALLED)-peers
	$(PY) -m tests.fuzz $(N) --jobs $(JOBS) --peer torch --peer jax

njit-programs: $(INSTALLED)-dev
	$(PY) -m tests.njit $(N) --first $(FIRST) --jobs $(JOBS)

# Every kind of array in every mode, for which `test` takes each kind in one mode, six times as long;
# and the programs of the benchmark that JAX compiles for a minute.
nightly: $(INSTALLED)-dev $(INSTALLED)-peers
	$(PY) -m pytest -n $(JOBS) --nightly tests/conformance/test_input_arrays.py tests/peers/test_gradbench.py

faults: $(INSTALLED)-dev
	TAPEGRAD_TRIALS=$(N) $(PY) -m pytest -n $(JOBS) tests/faults/test_in_between.py

bench: $(INSTALLED)-bench
	set -e; for suite in $(SUITES); do $(PY) -m bench $$suite $(BENCH); done

examples: scripts
	$(PY) -m pytest tests/test_documents.py tests/test_examples.py
scripts: $(INSTALLED)-dev $(INSTALLED)-examples
	$(PY) -m examples

# Strict: a link without its page or heading, and a page without its place, is an error.
docs: $(INSTALLED)-docs
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

autograd-suite: $(INSTALLED)-dev
	$(PY) tests/suites/autograd_suite.py

torch-suite: $(INSTALLED)-dev
	$(PY) tests/suites/torch_suite.py $(TORCH_SOURCE)

torch-samples: $(INSTALLED)-dev $(INSTALLED)-peers
	$(PY) tests/suites/torch_samples.py

array-api: $(INSTALLED)-dev $(INSTALLED)-array-api
	$(PY) tests/suites/array_api_suite.py $(SUITE) --jobs $(JOBS)

build: $(INSTALLED)-release
	rm -rf dist
	$(PY) -m build
	$(PY) -m twine check --strict dist/*
	@! $(PY) -m zipfile -l dist/*.whl | grep -E '^(tests|bench|docs)/' || \
	  { echo "these are not for the wheel"; exit 1; }
	@wc -c dist/*.whl dist/*.tar.gz

# In a folder without the package's sources; one test compares with them.
wheel-test: build
	rm -rf build
	mkdir build
	tar -xzf dist/*.tar.gz -C build --strip-components 1
	rm -r build/tapegrad
	$(PYTHON) -m venv build/.venv
	build/.venv/bin/python -m pip --disable-pip-version-check --quiet install dist/*.whl \
		pytest pytest-xdist hypothesis mpmath
	build/.venv/bin/python -m pip check
	cd build && .venv/bin/python -m tapegrad compile && .venv/bin/python -m tapegrad
	cd build && .venv/bin/python -m pytest -n $(JOBS) tests/test_seeds*.py tests/functions \
		tests/autograd --deselect=tests/functions/test_elementwise.py::$(FROM_SOURCES)
	rm -r build
FROM_SOURCES := test_what_is_written_from_the_rows_is_current

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || \
	  { echo "tapegrad needs Python 3.11 to 3.14: make ... PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A stamp is newer than pyproject.toml once its installation has succeeded.
$(INSTALLED): pyproject.toml | $(PY)
	$(PIP) --editable .
	@touch $@

$(INSTALLED)-%: pyproject.toml | $(PY)
	$(PIP) --editable '.[$*]'
	@touch $@
