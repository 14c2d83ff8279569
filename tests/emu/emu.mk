# emu.mk: CUDA on the CPU, for tests: $B/libnl_cuda_emu.so (the backend of --device emu, from the same sources as
# libnl_cuda.so) and $B/tests/test_emu. Needs a C++ compiler and the headers of CUDA 12 or newer, no nvcc or driver.

ifndef EMU_CUDA
EMU_CUDA := $(or $(patsubst %/bin/nvcc,%,$(shell command -v nvcc)),/usr/local/cuda)
endif
EMU_HAVE := $(shell grep -qsE '^\#define CUDART_VERSION +1[2-9]' $(EMU_CUDA)/include/cuda_runtime_api.h && \
	test -e $(EMU_CUDA)/include/cublas_v2.h && echo yes)
# The sanitisers of one compiler do not mix with the other's.
EMU_CXX ?= $(if $(findstring clang,$(CC)),clang++,g++)
EMU_FLAGS = $(CPPFLAGS) -O2 -g -march=native -ffp-contract=off -fno-math-errno -fno-strict-aliasing -fPIC -pthread -DNL_EMU \
	$(if $(filter /usr,$(EMU_CUDA)),,-isystem $(EMU_CUDA)/include) $(EMU_SAN) $(if $(findstring thread,$(SAN)),-DEMU_TSAN)
EMU_SAN = $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
EMU_WARN = -Wall -Wextra -Wshadow $(WERROR)
# Kernels of the same body stay apart, as their names do; locals that nobody set hold a pattern.
EMU_CU = -x c++ -include tests/emu/emu_device.h -ftrivial-auto-var-init=pattern \
	$(if $(findstring clang,$(EMU_CXX)),,-fno-ipa-icf) -Wno-unknown-pragmas -Wno-shadow

EMU_RUNTIME = $(patsubst tests/emu/%.cpp,$B/emu/%.o,$(wildcard tests/emu/emu_*.cpp))
EMU_TEST = $(patsubst tests/emu/%.cpp,$B/emu/%.o,tests/emu/test_emu.cpp $(wildcard tests/emu/cases_*.cpp)) \
	$B/emu/cases_kernels.cu.o
EMU_BACKEND = $(patsubst kernels/%,$B/emu/%.o,$(wildcard kernels/cuda_*.cu kernels/cuda_*.c) kernels/base.c)

ifeq ($(EMU_HAVE),yes)
test-only: $B/tests/test_emu $(if $(wildcard kernels/cuda_backend.c),$B/libnl_cuda_emu.so)
else
test-only: $B/tests/test_emu_skipped
endif

$B/libnl_cuda_emu.so: $(EMU_BACKEND) $(EMU_RUNTIME)
	$(call Q,LD) $(EMU_CXX) -shared -Wl,-Bsymbolic $(EMU_SAN) -pthread $(LDFLAGS) -o $@ $^ -ldl

$B/tests/test_emu: $(EMU_TEST) $(EMU_RUNTIME)
	@mkdir -p $(@D)
	$(call Q,LD) $(EMU_CXX) $(EMU_SAN) -pthread $(LDFLAGS) -o $@ $^ -ldl

$B/tests/test_emu_skipped:
	@mkdir -p $(@D)
	@printf '%s\n' '#!/bin/sh' 'echo 1..1; echo "ok 1 # SKIP no headers of CUDA 12 or newer"' > $@ && chmod +x $@

# The runtime switches stacks under TSan's eyes, and tells it so: its own accesses are not to be seen.
$B/emu/emu_%.o: EMU_SAN := $(if $(findstring thread,$(SAN)),,$(EMU_SAN))
$B/emu/emu_%.o: tests/emu/emu_%.cpp
	@mkdir -p $(@D)
	$(call Q,CXX) $(EMU_CXX) -std=c++17 $(EMU_FLAGS) $(EMU_WARN) -MMD -MP -c -o $@ $<

$B/emu/%.o: tests/emu/%.cpp
	@mkdir -p $(@D)
	$(call Q,CXX) $(EMU_CXX) -std=c++17 $(EMU_FLAGS) $(EMU_WARN) -MMD -MP -c -o $@ $<

$B/emu/%.cu.o: tests/emu/%.cu
	@mkdir -p $(@D)
	$(call Q,CXX) $(EMU_CXX) -std=c++17 $(EMU_FLAGS) $(EMU_WARN) $(EMU_CU) -MMD -MP -c -o $@ $<

$B/emu/%.cu.o: kernels/%.cu
	@mkdir -p $(@D)
	$(call Q,CXX) $(EMU_CXX) -std=c++17 $(EMU_FLAGS) $(EMU_WARN) $(EMU_CU) -Itests/emu -Ikernels -MMD -MP -c -o $@ $<

$B/emu/%.c.o: kernels/%.c
	@mkdir -p $(@D)
	$(call Q,CC) $(CC) $(ALL_CFLAGS) $(EMU_FLAGS) -MMD -MP -c -o $@ $<

-include $(wildcard $B/emu/*.d)
