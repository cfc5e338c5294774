# Every target works from a bare clone: it makes .venv, installs what is pinned in constraints.txt, then does its job.
# The second time, .venv is there already and the job starts at once.

SHELL := bash
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help install browser demo test lint neon bench pictures clean

help:
	@echo "make demo      train a small Spikformer on embedded digits, measure it and write a report, in about a minute"
	@echo "make test      lint and run every test"
	@echo "make lint      ruff and mypy"
	@echo "make neon      run the engine's kernels for ARM under emulation, and compare them with the scalar ones"
	@echo "make bench     speed and memory of spikformer_4_384_cifar10, and of the data path, on this machine"
	@echo "make pictures  draw the pictures of the documentation"
	@echo "make browser   install Debian's Chromium, which the tests of the report need"
	@echo "make install   only make .venv; then .venv/bin/spikformer --help"
	@echo "make clean     remove .venv and everything built"

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt CMakeLists.txt $(wildcard kernels/* kernels/*/*)
	@echo "==> Making .venv and installing spikformer with its pinned dependencies (a minute or two, once)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

demo: $(INSTALLED)
	@echo "==> Training spikformer_tiny_digits on scikit-learn's digits"
	$(BIN)/spikformer train spikformer_tiny_digits --output runs/demo --overwrite
	@echo "==> Evaluating the saved weights on digits it has not seen"
	$(BIN)/spikformer evaluate runs/demo/best.safetensors
	@echo "==> Counting what an inference costs, beside the ANN twin"
	$(BIN)/spikformer energy runs/demo/best.safetensors
	@echo "==> Drawing what it looks at"
	$(BIN)/spikformer attention runs/demo/best.safetensors
	@echo "==> Writing one page about all of it"
	$(BIN)/spikformer report runs/demo
	@echo "==> Checking this installation against the paper and the authors' code"
	$(BIN)/spikformer verify
	@echo "==> Done. Open runs/demo/report.html in a browser; curves.png, best_test_confusion.png, best_attention_1.png and the"
	@echo "    weights are beside it. $(BIN)/spikformer --help shows what else there is"

# Debian's own browser and driver; elsewhere, install Chromium and chromedriver by hand into /usr/bin.
browser:
	@test -x /usr/bin/chromium -a -x /usr/bin/chromedriver \
	  || { echo "==> Installing Chromium for the tests of the report"; \
	       apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null; } \
	  || { echo "Debian's chromium and chromium-driver could not be installed; install them as root: tests of the report will fail." >&2; exit 0; }

test: lint browser
	@echo "==> Running the tests"
	$(BIN)/python -m pytest -n 2

lint: $(INSTALLED)
	@echo "==> Checking style and types"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Debian's own compiler and emulator; the flags of the core in CMakeLists.txt, as a release, and warnings are errors.
NEON := build/neon/compare_sets
NEON_SOURCES := tests/neon/compare_sets.cpp kernels/engine/{choice,kernels_neon,kernels_scalar,layer}.cpp
neon:
	@test -x /usr/bin/aarch64-linux-gnu-g++ -a -x /usr/bin/qemu-aarch64 \
	  || { echo "==> Installing a compiler and an emulator for ARM"; \
	       apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	         g++-aarch64-linux-gnu qemu-user >/dev/null; } \
	  || { echo "Debian's g++-aarch64-linux-gnu and qemu-user could not be installed; install them as root." >&2; exit 1; }
	@echo "==> Comparing the NEON kernels with the scalar ones, on an emulated processor"
	@mkdir -p $(dir $(NEON))
	aarch64-linux-gnu-g++ -std=c++17 -O3 -DNDEBUG -ffp-contract=off -fno-trapping-math -Wall -Wextra -Werror -static \
	  -DSPIKFORMER_HAS_NEON -Ikernels $(NEON_SOURCES) -o $(NEON)
	qemu-aarch64 $(NEON) neon

bench: $(INSTALLED)
	@echo "==> Measuring speed and memory (close other programs first)"
	$(BIN)/python benchmarks/bench_model.py
	$(BIN)/python benchmarks/bench_data.py
	$(BIN)/python benchmarks/bench_scaling.py

# Of the data, then of a network that learns digits, as images and as events, and of its attention after five epochs.
PICTURES := docs/pictures
DIGITS := runs/pictures/digits
EVENTS := runs/pictures/digits_dvs
pictures: $(INSTALLED)
	$(BIN)/python $(PICTURES)/draw.py
	$(BIN)/spikformer train spikformer_tiny_digits --output $(DIGITS) --overwrite
	$(BIN)/spikformer train spikformer_tiny_digits_dvs --output $(EVENTS) --overwrite
	$(BIN)/spikformer ablate attention --only ssa relu leaky_relu identity --seeds 0 --epochs 5 --output runs/pictures/attention
	$(BIN)/spikformer attention $(DIGITS)/best.safetensors --samples 7 --output $(PICTURES)/attention_digits.svg
	$(BIN)/spikformer firing $(DIGITS)/best.safetensors --output $(PICTURES)/firing_digits.svg
	$(BIN)/spikformer figure curves $(DIGITS) $(EVENTS) --output $(PICTURES)/curves_digits.svg
	$(BIN)/spikformer figure surrogate --output $(PICTURES)/surrogate.svg
	$(BIN)/spikformer figure raster $(DIGITS)/best.safetensors --sample 7 --output $(PICTURES)/raster_digits.svg
	$(BIN)/spikformer figure events $(EVENTS)/best.safetensors --sample 7 --output $(PICTURES)/events_digits_dvs.svg
	$(BIN)/spikformer figure products runs/pictures/attention/{ssa,relu,leaky_relu,identity}/seed_0/last.safetensors \
	  --output $(PICTURES)/products_digits.svg

clean:
	rm -rf .venv build dist
