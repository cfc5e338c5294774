# The native core and the engine outside the package: ARM, sanitizers, threads, WebAssembly and fuzzing. The Makefile
# includes this file, so that paths are the repository's.

# Debian's own compiler and emulator; the flags of the core in CMakeLists.txt, as a release, and warnings are errors. The
# scalar set's fingerprint on both processors ties ARM's bits to those of this machine.
NEON := build/neon
CORE_FLAGS := -std=c++17 -ffp-contract=off -fno-trapping-math -Wall -Wextra -Werror -Ikernels
NEON_FLAGS := $(CORE_FLAGS) -O3 -DNDEBUG
NEON_SOURCES := tests/neon/compare_sets.cpp kernels/core/{choice,layer}.cpp kernels/isa/scalar/kernels.cpp
.PHONY: arm-tools
arm-tools:
	@test -x /usr/bin/aarch64-linux-gnu-g++ -a -x /usr/bin/qemu-aarch64 \
	  || { echo "==> Installing a compiler and an emulator for ARM"; \
	       apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	         g++-aarch64-linux-gnu qemu-user >/dev/null; } \
	  || { echo "Debian's g++-aarch64-linux-gnu and qemu-user could not be installed; install them as root." >&2; exit 1; }
neon: arm-tools $(NEON)/here
	@echo "==> Comparing the NEON kernels with the scalar ones, on an emulated processor"
	@mkdir -p $(NEON)
	aarch64-linux-gnu-g++ $(NEON_FLAGS) -static -DSPIKFORMER_HAS_NEON $(NEON_SOURCES) kernels/isa/neon/kernels.cpp \
	  -o $(NEON)/emulated
	$(NEON)/here scalar > $(NEON)/here.txt
	qemu-aarch64 $(NEON)/emulated neon | tee $(NEON)/emulated.txt; exit $${PIPESTATUS[0]}
	@diff <(grep -o 'fingerprint .*' $(NEON)/here.txt) <(grep -o 'fingerprint .*' $(NEON)/emulated.txt) \
	  || { echo "The scalar kernels give other bits on ARM than here." >&2; exit 1; }

# A second native core, compiled with GCC's sanitizers, in an environment of its own that reads .venv's libraries.
# wheel.cmake: if it cannot be compiled, that is an error, and no reason to install without it.
SANITIZED := build/sanitize
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=all -D_GLIBCXX_ASSERTIONS \
  -g -O1 -fno-omit-frame-pointer
$(SANITIZED)/installed: $(INSTALLED)
	@echo "==> Compiling the native core with sanitizers (two or three minutes, and again when it changes)"
	@$(BIN)/python -m venv --without-pip $(SANITIZED)
	@realpath .venv/lib/python*/site-packages > "$$(realpath $(SANITIZED)/lib/python*/site-packages)/venv.pth"
	@CXX=g++ $(BIN)/python -m pip --python $(SANITIZED)/bin/python install --quiet --no-deps --editable . \
	  --config-settings build-dir=$(SANITIZED)/cmake --config-settings wheel.cmake=true \
	  --config-settings cmake.build-type=Sanitized --config-settings cmake.define.CMAKE_CXX_FLAGS_SANITIZED="$(SANITIZERS)"
	@touch $@

# Leaks are not looked for: Python does not free all it has when it ends. One test is left out: it limits the address
# space, of which AddressSanitizer needs terabytes. With --capture=sys, pytest lets the sanitizers' reports through.
SANITIZED_PYTHON := LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1 $(SANITIZED)/bin/python
sanitize: $(SANITIZED)/installed
	@echo "==> Running the native core's tests under AddressSanitizer and UndefinedBehaviorSanitizer"
	@grep -q __asan_init "$$($(SANITIZED_PYTHON) -c 'import spikformer._native as core; print(core.__file__)')" \
	  || { echo "Python imports a native core without sanitizers; remove $(SANITIZED) and try again." >&2; exit 1; }
	$(SANITIZED_PYTHON) -m pytest --capture=sys tests/engine tests/neurons \
	  --deselect tests/engine/test_engine_misuse.py::test_it_works_after_a_call_that_had_no_memory \
	  --deselect tests/engine/test_allocations.py

# The engine's own threads, without Python. The neurons of training (kernels/core/lif.cpp) share their work by OpenMP, whose
# library is not compiled for ThreadSanitizer, and are not in it.
ENGINE_SOURCES := kernels/core/{attention,choice,convolutions,engine,executor,infer,layer,lists,maps,plan,probes,products,program,threads}.cpp \
  kernels/isa/scalar/kernels.cpp
TSAN := build/tsan
tsan:
	@echo "==> Running the engine's threads under ThreadSanitizer (about four minutes)"
	@mkdir -p $(TSAN)
	g++ $(CORE_FLAGS) -O1 -g -fsanitize=thread tests/native/threads.cpp $(ENGINE_SOURCES) -o $(TSAN)/threads
	TSAN_OPTIONS=halt_on_error=1 $(TSAN)/threads

# Engine files through the C interface, in the build with sanitizers that tests/native runs.
C_SOURCES := kernels/bindings/c/{load_file,probes,spikformer}.cpp \
  kernels/core/{engine_file,json,op_reader,preprocessing,resample,tensor_file,utf8}.cpp
CORE_HEADERS := $(wildcard kernels/core/*.hpp kernels/isa/*.hpp kernels/isa/*/*.hpp kernels/bindings/c/*.h*)
RUN := build/run
RUN_SANITIZED := $(patsubst kernels/%.cpp,$(RUN)/sanitized/%.o,$(shell echo $(ENGINE_SOURCES) $(C_SOURCES)))
$(RUN)/sanitized/%.o: kernels/%.cpp $(CORE_HEADERS)
	@mkdir -p $(@D)
	g++ $(CORE_FLAGS) $(SANITIZERS) -fPIC -c $< -o $@
.SECONDARY: $(RUN_SANITIZED)  # kept, though pattern rules alone name them
C_FLAGS := -std=c11 -Wall -Wextra -Werror -Ikernels/bindings/c
$(RUN)/sanitized/%: %.c $(RUN_SANITIZED)
	gcc $(C_FLAGS) $(SANITIZERS) -c $< -o $@.o
	g++ $(SANITIZERS) $@.o $(RUN_SANITIZED) -o $@
$(RUN)/sanitized/libspikformer.so: $(RUN_SANITIZED)
	g++ $(SANITIZERS) -shared $^ -o $@
vpath %.c tests/native kernels/bindings/c

# Whole programs on the emulated processor: the C library with NEON, against the scalar engine of this machine.
ARM := build/arm
ARM_OBJECTS := $(patsubst kernels/%.cpp,$(ARM)/%.o,$(shell echo $(ENGINE_SOURCES) $(C_SOURCES)) kernels/isa/neon/kernels.cpp)
$(ARM)/%.o: kernels/%.cpp $(CORE_HEADERS)
	@mkdir -p $(@D)
	aarch64-linux-gnu-g++ $(NEON_FLAGS) -DSPIKFORMER_HAS_NEON -c $< -o $@
.SECONDARY: $(ARM_OBJECTS)
$(ARM)/%: tests/native/%.c $(ARM_OBJECTS)
	aarch64-linux-gnu-gcc $(C_FLAGS) -O2 -c $< -o $@.o
	aarch64-linux-gnu-g++ -static $@.o $(ARM_OBJECTS) -o $@
arm: neon $(INSTALLED)
	@echo "==> Running whole programs on an emulated ARM processor"
	$(BIN)/python -m pytest tests/native/test_arm.py

# A wheel for ARM, and $(ARM)/python, which is Debian's interpreter for ARM with that wheel and NumPy. Debian's packages are
# unpacked into a folder: nothing is installed, and no root is needed. The wheel is built by the Python of this machine,
# which takes what its sysconfig says from the other one; so both have the same version.
ARM_PYTHON = python$(shell $(BIN)/python -c "import sys; print('%d.%d' % sys.version_info[:2])")
ARM_APT = apt-get -qq $(addprefix -o ,APT::Architecture=arm64 APT::Architectures=arm64 APT::Sandbox::User=root \
  $(addprefix Dir::,State=$(abspath $(ARM)/apt) State::status=/dev/null Cache=$(abspath $(ARM)/apt)))
ARM_PACKAGES = $(ARM_PYTHON)-minimal lib$(ARM_PYTHON)-{minimal,stdlib,dev} libc6 libgcc-s1 libstdc++6 libgomp1 zlib1g libexpat1 libffi8
$(ARM)/root/unpacked: | $(INSTALLED)
	@echo "==> Fetching Debian's $(ARM_PYTHON) for ARM"
	@mkdir -p $(ARM)/apt/{lists,archives}/partial
	$(ARM_APT) update
	cd $(ARM)/apt && $(ARM_APT) download $(ARM_PACKAGES)
	for package in $(ARM)/apt/*.deb; do dpkg -x $$package $(ARM)/root; done
	@touch $@
$(ARM)/tools/_sysconfigdata__aarch64-linux-gnu.py: $(ARM)/root/unpacked
	@$(BIN)/python -m pip install --quiet --target $(@D) scikit-build-core nanobind cmake ninja
	@cp $(ARM)/root/usr/lib/$(ARM_PYTHON)/$(@F) $@
ARM_WHEEL = CMAKE_SYSTEM_NAME=Linux CMAKE_SYSTEM_PROCESSOR=aarch64 CMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  CMAKE_CXX_FLAGS=-I$(abspath $(ARM)/root/usr/include) Python_INCLUDE_DIR=$(abspath $(ARM)/root/usr/include/$(ARM_PYTHON))
ARM_PLATFORMS := linux_aarch64 manylinux_2_28_aarch64 manylinux2014_aarch64
$(ARM)/python: $(ARM)/tools/_sysconfigdata__aarch64-linux-gnu.py pyproject.toml CMakeLists.txt \
  $(wildcard kernels/core/* kernels/isa/*.hpp kernels/isa/*/* kernels/bindings/python/*) $(shell find src/spikformer -name '*.py')
	@echo "==> Building a wheel for ARM, and installing it into $(ARM)/site"
	rm -rf $(ARM)/{site,wheel}
	PATH=$(abspath $(ARM)/tools/bin):$$PATH PYTHONPATH=$(abspath $(ARM)/tools) _PYTHON_HOST_PLATFORM=linux-aarch64 \
	  _PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata__aarch64-linux-gnu $(BIN)/python -m pip wheel --quiet . --no-deps \
	  --no-build-isolation --wheel-dir $(ARM)/wheel --config-settings build-dir=$(ARM)/cmake --config-settings wheel.cmake=true \
	  $(addprefix --config-settings cmake.define.,$(ARM_WHEEL))
	$(BIN)/python -m pip install --quiet --target $(ARM)/site --no-deps --only-binary=:all: \
	  $(addprefix --platform ,$(ARM_PLATFORMS)) numpy $(ARM)/wheel/*.whl
	@printf '#!/bin/sh\nexec qemu-aarch64 -L %s -E PYTHONPATH=%s %s "$$@"\n' $(abspath $(ARM)/root $(ARM)/site) \
	  $(abspath $(ARM)/root/usr/bin/$(ARM_PYTHON)) > $@
	@chmod +x $@
arm-wheel: arm-tools $(ARM)/python
	@echo "==> Running that wheel on an emulated ARM processor"
	$(BIN)/python -m pytest tests/native/test_arm.py -k wheel

# The C interface for browsers, by the compiler of the package ziglang. Its C++ library has no exceptions: what they need
# is compiled from the sources that come with it. No name of a folder is in the result, which is the same everywhere.
WASM := build/wasm
PAGE_ENGINE := src/spikformer/page/engine.wasm
WASM_SOURCES := $(filter-out %/threads.cpp %/load_file.cpp kernels/isa/%,$(shell echo $(ENGINE_SOURCES) $(C_SOURCES))) \
  kernels/bindings/wasm/runtime.cpp kernels/bindings/wasm/threads.cpp kernels/isa/wasm/kernels.cpp
WASM_OBJECTS := $(patsubst kernels/%.cpp,$(WASM)/%.o,$(WASM_SOURCES)) \
  $(WASM)/libcxxabi/cxa_exception.o $(WASM)/libcxxabi/cxa_personality.o $(WASM)/unwind.o
WASM_TARGET := -target wasm32-wasi -mcpu=generic+simd128+exception_handling -fwasm-exceptions -mllvm -wasm-enable-eh \
  -DNDEBUG -g0
WASM_MEMORY := 1073741824
WASM_EXPORTS := malloc free $(addprefix spikformer_,load_memory free get_shape get_preprocessing class_name prepare run \
  new_state step free_state num_ops get_ops tap read_tap clear_taps intervene clear_interventions get_reports last_error)
ZIG := $(BIN)/python -m ziglang
ZIG_LIBRARY = $(shell $(BIN)/python -c "import ziglang; print(ziglang.__path__[0])")/lib
.PHONY: wasm wasm-kernels zig
wasm: $(PAGE_ENGINE)
zig: $(INSTALLED)
	@$(BIN)/python -c "import ziglang" 2>/dev/null \
	  || { echo "==> Installing zig"; $(BIN)/python -m pip install --quiet ziglang; }
$(WASM)/isa/wasm/kernels.o: WASM_SPEED := -O3
WASM_SPEED := -Os
$(WASM)/%.o: kernels/%.cpp $(CORE_HEADERS) | zig
	@mkdir -p $(@D)
	$(ZIG) c++ $(WASM_TARGET) $(CORE_FLAGS) $(WASM_SPEED) -DSPIKFORMER_HAS_WASM -c $< -o $@
$(WASM)/libcxxabi/%.o: | zig
	@mkdir -p $(@D)
	cd $(ZIG_LIBRARY) && $(abspath $(BIN))/python -m ziglang c++ $(WASM_TARGET) -Os -D_LIBCPP_BUILDING_LIBRARY \
	  -D_LIBCXXABI_BUILDING_LIBRARY -Ilibcxxabi/include -Ilibcxx/src -Ilibunwind/include \
	  -c libcxxabi/src/$*.cpp -o $(abspath $@)
$(WASM)/unwind.o: | zig
	@mkdir -p $(@D)
	cd $(ZIG_LIBRARY) && $(abspath $(BIN))/python -m ziglang cc $(WASM_TARGET) -Os -w -D_LIBUNWIND_HIDE_SYMBOLS \
	  -Ilibunwind/include -c libunwind/src/Unwind-wasm.c -o $(abspath $@)
$(PAGE_ENGINE): $(WASM_OBJECTS)
	@mkdir -p $(@D)
	$(ZIG) c++ $(WASM_TARGET) -O2 -mexec-model=reactor $(WASM_OBJECTS) -Wl,--max-memory=$(WASM_MEMORY) -Wl,--strip-all \
	  $(addprefix -Wl$(,)--export=,$(WASM_EXPORTS)) -o $@
	@chmod 644 $@

# The same comparison as `make neon`, in Node.
WASM_COMPARED := $(WASM)/core/choice.o $(WASM)/core/layer.o $(WASM)/isa/wasm/kernels.o $(WASM)/bindings/wasm/runtime.o \
  $(filter $(WASM)/libcxxabi/% $(WASM)/unwind.o,$(WASM_OBJECTS))
$(WASM)/compare_sets.wasm: $(wildcard tests/neon/*.[ch]pp) $(WASM_COMPARED)
	$(ZIG) c++ $(WASM_TARGET) $(CORE_FLAGS) -O2 -DSPIKFORMER_HAS_WASM tests/neon/compare_sets.cpp $(WASM_COMPARED) -o $@
$(NEON)/here: $(wildcard tests/neon/*.[ch]pp) $(CORE_HEADERS)
	@mkdir -p $(@D)
	g++ $(NEON_FLAGS) $(NEON_SOURCES) -o $@
wasm-kernels: $(NEON)/here $(WASM)/compare_sets.wasm
	@echo "==> Comparing the kernels for browsers, in Node, with the scalar ones of this machine"
	@diff <($(NEON)/here scalar | grep -o 'fingerprint .*') \
	      <(node --no-warnings tests/neon/run_wasi.mjs $(WASM)/compare_sets.wasm wasm | grep -o 'fingerprint .*') \
	  || { echo "The kernels for browsers give other bits than the scalar ones." >&2; exit 1; }

# Debian's clang, which brings libFuzzer. What it learns stays in build/fuzz-engine/corpus and files; bytes that crash the
# engine are kept in build/fuzz-engine/finds, and `build/fuzz-engine/fuzz FILE`, or fuzz-file, runs one again.
fuzz-engine: SECONDS := 300
FUZZ := build/fuzz-engine
FUZZ_FLAGS := $(CORE_FLAGS) -O1 -g -D_GLIBCXX_ASSERTIONS -fno-omit-frame-pointer \
  -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
AVX2 := -mavx2 -mfma -mbmi -mbmi2 -mpopcnt
AVX512 := $(AVX2) -mavx512f -mavx512bw -mavx512dq -mavx512vl
ifeq ($(shell uname -m),x86_64)
FUZZ_FLAGS += -DSPIKFORMER_HAS_X86
FUZZ_SETS := $(FUZZ)/isa/avx2/kernels.o $(FUZZ)/isa/avx512/kernels.o
endif
$(FUZZ)/isa/avx2/kernels.o: FUZZ_FLAGS += $(AVX2)
$(FUZZ)/isa/avx512/kernels.o: FUZZ_FLAGS += $(AVX512)
$(FUZZ)/%.o: kernels/%.cpp $(CORE_HEADERS) | clang
	@mkdir -p $(@D)
	clang++ $(FUZZ_FLAGS) -c $< -o $@

.PHONY: clang
clang:
	@test -x /usr/bin/clang++ \
	  || { echo "==> Installing clang"; \
	       apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	         clang libclang-rt-dev >/dev/null; } \
	  || { echo "Debian's clang and libclang-rt-dev could not be installed; install them as root." >&2; exit 1; }

FUZZ_OBJECTS := $(patsubst kernels/%.cpp,$(FUZZ)/%.o,$(shell echo $(ENGINE_SOURCES))) $(FUZZ_SETS)
$(FUZZ)/fuzz: tests/native/fuzz_engine.cpp $(wildcard tests/native/fuzz_*.hpp) $(FUZZ_OBJECTS)
	clang++ $(FUZZ_FLAGS) -fsanitize=fuzzer $(filter-out %.hpp,$^) -o $@
FUZZ_FILE_OBJECTS := $(patsubst kernels/%.cpp,$(FUZZ)/%.o,$(filter-out %/load_file.cpp,$(shell echo $(C_SOURCES))))
$(FUZZ)/fuzz-file: tests/native/fuzz_file.cpp $(FUZZ_OBJECTS) $(FUZZ_FILE_OBJECTS)
	clang++ $(FUZZ_FLAGS) -fsanitize=fuzzer $^ -o $@

# Programs and their calls first, then files through the C interface, from files of our own and damaged ones.
FUZZED := ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 nice
FUZZ_LIMITS = -max_total_time=$$(($(SECONDS) / 2)) -timeout=60 -rss_limit_mb=2048 -malloc_limit_mb=512 \
  -artifact_prefix=$(FUZZ)/finds/ -print_final_stats=1
fuzz-engine: $(FUZZ)/fuzz $(FUZZ)/fuzz-file $(INSTALLED)
	@echo "==> Fuzzing the engine and its files for $(SECONDS) seconds: at most 60 seconds and 2 GB for a case"
	@mkdir -p $(FUZZ)/corpus $(FUZZ)/files $(FUZZ)/finds
	$(FUZZED) $(FUZZ)/fuzz $(FUZZ)/corpus $(FUZZ_LIMITS) -max_len=2048 -len_control=10
	$(BIN)/python -m tests.native.seeds $(FUZZ)/seeds
	$(FUZZED) $(FUZZ)/fuzz-file $(FUZZ)/files $(FUZZ)/seeds $(FUZZ_LIMITS) -max_len=65536
