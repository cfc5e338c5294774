# Every target works from a bare clone: it makes .venv, installs what is pinned in constraints.txt, then does its job.
# The second time, .venv is there already and the job starts at once.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help install demo test lint bench pictures clean

help:
	@echo "make demo      train, save, load and check a small Spikformer on embedded digits, in about a minute"
	@echo "make test      lint and run every test"
	@echo "make lint      ruff and mypy"
	@echo "make bench     speed and memory of spikformer_4_384_cifar10, and of the data path, on this machine"
	@echo "make pictures  draw the pictures of the documentation"
	@echo "make install   only make .venv; then .venv/bin/spikformer --help"
	@echo "make clean     remove .venv and everything built"

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt CMakeLists.txt $(wildcard kernels/*)
	@echo "==> Making .venv and installing spikformer with its pinned dependencies (a minute or two, once)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

demo: $(INSTALLED)
	@echo "==> Training spikformer_tiny_digits on scikit-learn's digits"
	$(BIN)/spikformer train spikformer_tiny_digits --output runs/demo --overwrite
	@echo "==> Evaluating the saved weights on digits it has not seen"
	$(BIN)/spikformer evaluate runs/demo/best.safetensors
	@echo "==> Checking this installation against the paper and the authors' code"
	$(BIN)/spikformer verify
	@echo "==> Done. Look at runs/demo: curves.png, best_test_confusion.png, metrics.csv and the weights; $(BIN)/spikformer --help shows what else there is"

test: lint
	@echo "==> Running the tests"
	$(BIN)/python -m pytest -n 2

lint: $(INSTALLED)
	@echo "==> Checking style and types"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(INSTALLED)
	@echo "==> Measuring speed and memory (close other programs first)"
	$(BIN)/python benchmarks/bench_model.py
	$(BIN)/python benchmarks/bench_data.py
	$(BIN)/python benchmarks/bench_scaling.py

pictures: $(INSTALLED)
	$(BIN)/python docs/pictures/draw.py

clean:
	rm -rf .venv build dist
