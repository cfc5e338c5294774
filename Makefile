# Every target works from a bare clone: it makes .venv if it needs one, installs what is pinned, then does its job.
# The second time, .venv is there already and the job starts at once.

SHELL := bash
, := ,
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Compiled modules are kept, whatever the shell says: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install browser demo check test test-slow test-avx2 test-scalar lint neon arm arm-wheel sanitize tsan soak fuzz fuzz-engine bench \
  pictures clean

help:
	@echo "make demo      train a small Spikformer on embedded digits, measure it and write a report, in about a minute"
	@echo "make check     lint, types and the core tests, in under a minute: run it before every commit"
	@echo "make test      lint, types and all tests but the slow ones, in about ten minutes on two cores"
	@echo "make test-slow the slow tests: whole commands, several processes, benchmarks"
	@echo "make lint      ruff and mypy"
	@echo "make neon      run the engine's kernels for ARM under emulation, and compare them with the scalar ones"
	@echo "make arm       the same, then whole programs through the C library for ARM"
	@echo "make arm-wheel compile a wheel for ARM, and run it in an emulated interpreter"
	@echo "make sanitize  run the native core's tests on a build of it that stops at the first bad access to memory"
	@echo "make wasm      compile the engine for browsers: src/spikformer/page/engine.wasm"
	@echo "make wasm-kernels  compare the kernels for browsers with the scalar ones, in Node"
	@echo "make tsan      run the engine's threads under ThreadSanitizer"
	@echo "make fuzz-engine  look for bytes and files that crash the engine, under sanitizers, with libFuzzer"
	@echo "make soak      kill and resume the training command KILLS=100 times within SECONDS=1200, and compare the weights"
	@echo "make fuzz      look for files that readers mistake, SECONDS=60 for each of TARGETS=\"npz aedat4\" (all)"
	@echo "make bench     speed and memory of spikformer_4_384_cifar10, the data path and the kernels, on this machine"
	@echo "make pictures  draw the pictures of the documentation"
	@echo "make browser   install Debian's Chromium, which the tests of the report need"
	@echo "make install   only make .venv; then .venv/bin/spikformer --help"
	@echo "make clean     remove .venv and everything built"

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt CMakeLists.txt $(wildcard kernels/*/* kernels/*/*/*)
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
	@echo "==> A network that came with the package, trained for longer"
	$(BIN)/spikformer evaluate digits --confusion runs/demo/digits_confusion.png
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

check: lint
	@echo "==> Running the core tests"
	$(BIN)/python -m pytest -n 2 -m core $$(grep -rl --include='test_*.py' mark.core tests)

test: lint browser
	@echo "==> Running the tests"
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(INSTALLED) browser zig
	@echo "==> Running the slow tests: whole commands, several processes, benchmarks"
	$(BIN)/python -m pytest -n 2 -m slow

# The numeric tests again as on a CPU with AVX2 alone: PyTorch, MKL, oneDNN and our own kernels.
NUMERIC := tests/analysis tests/engine tests/layers tests/models tests/neurons tests/parity tests/training
test-avx2: $(INSTALLED)
	@echo "==> Running the numeric tests with everything held to AVX2"
	ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 ONEDNN_MAX_CPU_ISA=AVX2 SPIKFORMER_INSTRUCTIONS=avx2 \
	  $(BIN)/python -m pytest -n 2 -m "not slow" $(NUMERIC)

test-scalar: $(INSTALLED)
	@echo "==> Running the kernels' tests with scalar kernels"
	SPIKFORMER_INSTRUCTIONS=scalar $(BIN)/python -m pytest -n 2 -m "not slow" tests/engine tests/neurons

lint: $(INSTALLED)
	@echo "==> Checking style and types"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

include kernels/checks.mk

KILLS := 100
soak: SECONDS := 1200
soak: $(INSTALLED)
	@echo "==> Killing and resuming spikformer train, $(KILLS) times or for $(SECONDS) seconds"
	$(BIN)/python benchmarks/soak_train.py --kills $(KILLS) --seconds $(SECONDS)

# Atheris is installed when it is first needed: it has wheels for some Pythons on Linux, and elsewhere needs Clang.
fuzz: SECONDS := 60
TARGETS ?=
fuzz: $(INSTALLED)
	@$(BIN)/python -c "import atheris" 2>/dev/null \
	  || { echo "==> Installing Atheris"; $(BIN)/python -m pip install --quiet atheris; }
	@echo "==> Fuzzing every reader for $(SECONDS) seconds; the corpus and what is found are in build/fuzz"
	@OMP_NUM_THREADS=1 $(BIN)/python -m fuzz.run $(SECONDS) $(TARGETS)

bench: $(INSTALLED)
	@echo "==> Measuring speed and memory (close other programs first)"
	$(BIN)/python benchmarks/bench_model.py
	$(BIN)/python benchmarks/bench_data.py
	$(BIN)/python benchmarks/bench_scaling.py
	$(BIN)/python benchmarks/bench_kernels.py

# Of the data, then of a network that learns digits, as images and as events, and of its attention after five epochs.
PICTURES := docs/pictures
DIGITS := runs/pictures/digits
EVENTS := runs/pictures/digits_dvs
pictures: $(INSTALLED)
	$(BIN)/python $(PICTURES)/draw.py
	$(BIN)/python $(PICTURES)/train.py
	$(BIN)/spikformer train spikformer_tiny_digits --output $(DIGITS) --overwrite
	$(BIN)/spikformer train spikformer_tiny_digits_dvs --output $(EVENTS) --overwrite
	$(BIN)/spikformer ablate attention --only ssa relu leaky_relu identity --seeds 0 --epochs 5 --output runs/pictures/attention
	$(BIN)/spikformer attention $(DIGITS)/best.safetensors --samples 7 --output $(PICTURES)/attention_digits.svg
	$(BIN)/spikformer attention runs/pictures/spike_driven_digits --samples 7 --output $(PICTURES)/masks_spike_driven_digits.svg
	$(BIN)/spikformer attention runs/pictures/qkformer_digits --samples 7 --output $(PICTURES)/masks_qkformer_digits.svg
	$(BIN)/spikformer firing $(DIGITS)/best.safetensors --output $(PICTURES)/firing_digits.svg
	$(BIN)/spikformer figure curves $(DIGITS) $(EVENTS) --output $(PICTURES)/curves_digits.svg
	$(BIN)/spikformer figure surrogate --output $(PICTURES)/surrogate.svg
	$(BIN)/spikformer figure raster $(DIGITS)/best.safetensors --sample 7 --output $(PICTURES)/raster_digits.svg
	$(BIN)/spikformer figure events $(EVENTS)/best.safetensors --sample 7 --output $(PICTURES)/events_digits_dvs.svg
	$(BIN)/spikformer figure products runs/pictures/attention/{ssa,relu,leaky_relu,identity}/seed_0/last.safetensors \
	  --output $(PICTURES)/products_digits.svg

clean:
	rm -rf .venv build dist
