# NanoLLM: make, make demo, make test, make install. Knobs: CC CFLAGS SAN B PREFIX DESTDIR DEPS.

VERSION = 0.1.0
PREFIX ?= /usr/local
CC = gcc
CFLAGS ?= -O2 -g
# SAN=address,undefined or SAN=thread: a sanitised build beside the plain one.
SAN =
comma := ,
# V=1 shows the commands; TESTS="NAME..." runs only these tests.
Q = $(if $(V),,@echo '  $(1)' $@;)
B ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
PKGS = libcjson libpcre2-8 libutf8proc

WARN = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wmissing-prototypes -Wstrict-prototypes
ALL_CFLAGS = -std=c17 -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -pthread $(WARN) $(WERROR) -Ilib -Ikernels -Icmd \
	$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) $(CFLAGS) $(CPPFLAGS)
ALL_LDFLAGS = -pthread $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)
LIBS = $(shell pkg-config --libs $(PKGS)) -lm -ldl

PROGRAMS = $(filter-out cli%,$(patsubst cmd/%.c,%,$(wildcard cmd/*.c)))
CLI_OBJ = $(patsubst %.c,$B/obj/%.o,$(wildcard cmd/cli*.c))
LIB_SRC = $(filter-out kernels/cuda_%.c,$(wildcard lib/*.c kernels/*.c))
LIB_OBJ = $(LIB_SRC:%.c=$B/obj/%.o)
UNIT = $(patsubst tests/unit/%.c,$B/tests/%,$(wildcard tests/unit/test_*.c))
TOOLS = $(patsubst tests/tools/%.c,$B/tools/%,$(wildcard tests/tools/*.c))
MAN = $(wildcard man/*.[1-7])

# The CUDA backend, where there is a toolkit: a shared object that the programs load when a device is there. CUDA=no
# leaves it out; CUDA_ARCHS: real code for these, and PTX of the first for those that are newer; "all" (for a release):
# every one from 75 on that nvcc knows.
NVCC ?= $(shell command -v nvcc)
CUDA = $(if $(NVCC),yes,no)
CUDA_ARCHS ?= 75 80 90 120
ARCHS := $(if $(filter all,$(CUDA_ARCHS)),$(shell $(NVCC) --list-gpu-code | sed -n 's/^sm_//p' | awk '$$1 >= 75' | sort -n),$(CUDA_ARCHS))
CUDA_HOME = $(abspath $(dir $(NVCC))..)
CUDA_BACKEND = $(if $(SAN),,$(if $(filter yes,$(CUDA)),$B/libnl_cuda.so))
CUDA_OBJ = $(patsubst kernels/%,$B/cuda/%.o,$(wildcard kernels/cuda_*.cu kernels/cuda_*.c) kernels/base.c)
NVCC_FLAGS = $(CPPFLAGS) -std=c++17 -O3 -lineinfo -fmad=false -Xptxas -v,-warn-spills,-Werror -Ikernels -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra \
	$(foreach arch,$(ARCHS),-gencode arch=compute_$(arch),code=sm_$(arch)) \
	-gencode arch=compute_$(firstword $(ARCHS)),code=compute_$(firstword $(ARCHS))

all: $(PROGRAMS:%=$B/bin/%) $(CUDA_BACKEND)

$B/bin/%: $B/obj/cmd/%.o $(CLI_OBJ) $B/libnl.a
	@mkdir -p $(@D)
	$(call Q,LD) $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$B/libnl.a: $(LIB_OBJ)
	@rm -f $@
	$(call Q,AR) $(AR) rcs $@ $^

$B/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call Q,CC) $(CC) $(ALL_CFLAGS) $(ISA_$(*F)) -MMD -MP -c -o $@ $<

$B/tests/test_ops: $B/obj/tests/unit/parts/wide_kernels.o

$B/tests/%: tests/unit/%.c $B/libnl.a
	@mkdir -p $(@D)
	$(call Q,CC) $(CC) $(ALL_CFLAGS) -Itests/unit -MMD -MP $(ALL_LDFLAGS) -o $@ $(filter %.c %.o,$^) $B/libnl.a $(shell pkg-config --libs cmocka) $(LIBS)

# Small programs that tests run and nobody installs.
$B/tools/%: tests/tools/%.c $B/libnl.a
	@mkdir -p $(@D)
	$(call Q,CC) $(CC) $(ALL_CFLAGS) -MMD -MP $(ALL_LDFLAGS) -o $@ $< $B/libnl.a $(LIBS)

# A compiled tokenizer is of use only to the code that wrote it.
TOKENIZER = $(sort $(wildcard lib/tok*.[ch] lib/regex*.[ch] lib/unicode*.[ch]))
ISA_tok_cache = -DTOK_CACHE_FORMAT=$(shell cat $(TOKENIZER) | cksum | cut -d' ' -f1)u
$B/obj/lib/tok_cache.o: $(TOKENIZER)

ISA_backend = -DNL_LIBRARY_DIR='"$(PREFIX)/lib/nanollm"'
ISA_cpu_portable = -O3
ifeq ($(shell uname -m),x86_64)
ISA_cpu_avx2 = -O3 -mavx2 -mfma -mf16c
ISA_wide_kernels = $(ISA_cpu_avx2) -Wno-psabi
ISA_cpu_avx512 = -O3 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c
endif

# Never unloaded: the runtime's threads and handlers do not expect it.
$B/libnl_cuda.so: $(CUDA_OBJ)
	$(call Q,LD) $(CC) -shared -Wl,-z,nodelete -o $@ $^ $(LDFLAGS) -L$(CUDA_HOME)/lib64 -Wl,-rpath,$(CUDA_HOME)/lib64 -lcudart -ldl -lstdc++

$B/cuda/%.cu.o: kernels/%.cu
	@mkdir -p $(@D)
	$(call Q,NVCC) $(NVCC) $(NVCC_FLAGS) -MMD -MP -c -o $@ $< 2> $@.ptxas || { cat $@.ptxas; rm -f $@; exit 1; }
	@grep -vE '^ptxas info|^ +[0-9]+ bytes stack frame' $@.ptxas || true

$B/cuda/%.c.o: kernels/%.c
	@mkdir -p $(@D)
	$(call Q,CC) $(CC) $(ALL_CFLAGS) -fPIC -fvisibility=hidden -isystem $(CUDA_HOME)/include -MMD -MP -c -o $@ $<

include tests/emu/emu.mk

# Installs what is missing where that is allowed; DEPS=no turns it off.
deps:
	@DEPS=$(DEPS) tests/deps.sh $(PKGS)

test: deps
	@$(MAKE) --no-print-directory test-only

test-only: all $(UNIT) $(TOOLS)
	@B=$B tests/run.sh $(TESTS)

# The programs on a model against what transformers did: MODEL, a model folder; GOLDEN, what tests/reference/verify.py kept.
GOLDEN ?= $(MODEL)/golden
verify: all
	@B=$B tests/verify.sh "$(MODEL)" "$(GOLDEN)"

demo: deps
	@$(MAKE) --no-print-directory all
	@PATH="$(CURDIR)/$B/bin:$$PATH" examples/demo.sh

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(addprefix $(DESTDIR)$(PREFIX)/share/man/man,1 5 7)
	install -m 755 $(PROGRAMS:%=$B/bin/%) $(DESTDIR)$(PREFIX)/bin
	$(if $(CUDA_BACKEND),install -D -m 755 $(CUDA_BACKEND) $(DESTDIR)$(PREFIX)/lib/nanollm/libnl_cuda.so)
	for page in $(MAN); do install -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}; done

uninstall:
	rm -f $(PROGRAMS:%=$(DESTDIR)$(PREFIX)/bin/%) $(DESTDIR)$(PREFIX)/lib/nanollm/libnl_cuda.so
	for page in $(MAN); do rm -f $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/}; done

check-format:
	clang-format --dry-run -Werror cmd/*.[ch] lib/*.[ch] kernels/*.[ch] kernels/*.cu kernels/*.cuh tests/unit/*.[ch] tests/emu/*.cpp tests/emu/*.h tests/emu/*.cu

check-lint:
	shellcheck -x .ci/run tests/*.sh tests/gpu/*.sh tests/cli/tap.sh examples/*.sh examples/*/*.sh $$(grep -l '^#!/bin/bash' tests/cli/*.t)
	mandoc -Tlint -Wwarning $(MAN)
	cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr --enable=warning,performance,portability \
		--suppressions-list=tests/cppcheck.txt -Ilib -Ikernels -Icmd cmd lib kernels
	tests/mutate.sh -n

check-tidy:
	printf '%s\n' $(filter-out $(if $(NVCC),,kernels/cuda_%),$(wildcard cmd/*.c lib/*.c kernels/*.c)) | \
		xargs -P "$$(nproc)" -I{} clang-tidy --quiet --warnings-as-errors='*' {} -- -std=c17 -D_GNU_SOURCE -Ilib -Ikernels -Icmd \
		$(if $(NVCC),-isystem $(CUDA_HOME)/include)

# Registers and shared memory of every kernel against the committed table; `tests/registers.sh B > tests/registers.txt`
# makes it anew.
check-registers: $(CUDA_BACKEND)
	tests/registers.sh $B check

# Each parser under libFuzzer for some seconds, from the test data.
FUZZ_SECONDS ?= 10
check-fuzz:
	$(MAKE) --no-print-directory CC=clang SAN=fuzzer-no-link$(comma)address$(comma)undefined B=build-fuzz build-fuzz/libnl.a
	for f in tests/fuzz/*.c; do \
		name=$$(basename $$f .c); \
		clang -std=c17 -D_GNU_SOURCE -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Ilib -Ikernels \
			-o build-fuzz/$$name $$f build-fuzz/libnl.a $(LIBS) -pthread && mkdir -p build-fuzz/corpus/$$name && \
		build-fuzz/$$name -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=3000 -verbosity=0 -print_final_stats=0 \
			build-fuzz/corpus/$$name || exit 1; \
	done

# Everything that wants a GPU, on a machine that has one; results in build/gpu.
test-gpu:
	@tests/gpu/run.sh

# That the tests can fail: likely mistakes, one at a time, in a copy of the tree; some minutes.
check-mutations:
	@B=$B tests/mutate.sh

clean:
	rm -rf build build-*

.PHONY: all deps test test-only test-gpu verify demo install uninstall check-format check-lint check-tidy check-registers check-fuzz check-mutations clean
.SECONDARY:
-include $(LIB_OBJ:.o=.d) $(wildcard $B/obj/cmd/*.d $B/obj/tests/unit/parts/*.d $B/cuda/*.d $B/tests/*.d $B/tools/*.d)
