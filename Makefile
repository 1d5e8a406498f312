# `make demo` shows the main job at work, `make test` proves it. Each target makes the
# virtual environment and installs what it needs; nothing outside this folder changes.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt

# Two busy cores: waiting threads must sleep, not spin.
export OMP_WAIT_POLICY ?= PASSIVE

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench catalogue docs-images clean

help:
	@echo "make demo    Dens-PU on handwritten digits: a table and a picture"
	@echo "make test    the whole test suite"
	@echo "make check   ruff, mypy, codespell"
	@echo "make format  rewrite the sources in house style"
	@echo "make catalogue  write down the facts that the classes state, and the tables of docs"
	@echo "make bench   a small comparison on digits, three seeds, and its table"

demo: $(VENV)/.report
	$(BIN)/denspu demo

# Two workers of one thread each finish sooner than one of two.
test: export OMP_NUM_THREADS = 1
test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2

check: $(VENV)/.test $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell src tests docs examples benchmarks README.md CHANGELOG.md CONTRIBUTING.md

format: $(VENV)/.check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Into a file of its own: the recorded figures stay as they are.
bench: export OMP_NUM_THREADS = 1
bench: $(VENV)/.bench
	$(BIN)/denspu bench run benchmarks/specs/digits.toml --device cpu --jobs 2 \
		--records $(VENV)/bench-digits.jsonl

catalogue: $(VENV)/.test
	$(BIN)/python benchmarks/catalogue.py
	$(BIN)/python benchmarks/update_docs.py

docs-images: $(VENV)/.report
	$(BIN)/denspu demo --out docs/images

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "denspu needs Python 3.11 or newer; try: make PYTHON=python3.11 demo"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp an extra: reinstalled when the requirements change.
$(VENV)/.%: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[$*]"
	@touch $@
