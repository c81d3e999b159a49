# attest: exact blocked attention, its truth, and the judge. `make help` lists the targets.
# SPDX-License-Identifier: MIT
BUILD ?= build
CC ?= cc
OPENMP ?= 1
# Library paths of MPFR (with GMP), jansson and libmd come from pkg-config, whatever the prefix.
PKG_CONFIG ?= pkg-config

WARN = -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
ifeq ($(CI),true)
WARN += -Werror
endif
CFLAGS ?= -O2 -g
override CPPFLAGS += -Iinclude -Iref -Ioracle -Iattest -D_POSIX_C_SOURCE=200809L
# The bits and the bound hold for IEEE arithmetic without contraction.
override CFLAGS += -std=c11 -ffp-contract=off -fno-math-errno $(WARN)
ifeq ($(OPENMP),1)
override CFLAGS += -fopenmp
else
override CFLAGS += -Wno-unknown-pragmas
endif
LIBS := $(shell $(PKG_CONFIG) --libs mpfr jansson libmd 2>/dev/null) -lgmp -lm -ldl
override CPPFLAGS += $(shell $(PKG_CONFIG) --cflags mpfr jansson libmd 2>/dev/null)

# -- What there is ---------------------------------------------------------------------------
REF = attention validate convert simulate simulate_ops format truth truth_score truth_distance \
      truth_fast fast_keys fast_score fast_sum answer bound bound_rule bound_room bound_key \
      bound_score bound_dot bound_sum bound_order compare arith statistics
REF_BOTH = scalar standard state# compiled once for fp32 and once for fp64
ORACLE = tensors write fields sequences case results repro rows judge where rules \
          mutants mutant_row mutant_score diagnose suspects \
         paint exact suites fills fills_score search canvas layout recipe request vector manifest generate header
PROGRAM = main args line engine arith session judge check run truth trace show list generate \
         plugin plugin_run plugin_child guard junit \
         report detail json picture brief bench bench_run bench_say
TESTS = $(patsubst tests/check_%.c,%,$(sort $(wildcard tests/check_*.c)))# none can be forgotten

all: $(BUILD)/attest

objects = $(addprefix $(BUILD)/obj/,$(addsuffix .o,$(1)))
LIB_O = $(call objects,$(addprefix ref/,$(REF)) $(addsuffix 32,$(addprefix ref/,$(REF_BOTH))) \
                       $(addsuffix 64,$(addprefix ref/,$(REF_BOTH))))
ORACLE_O = $(call objects,$(addprefix oracle/,$(ORACLE)))
ATTEST_O = $(call objects,$(addprefix attest/,$(PROGRAM)))
include tiled/build.mk # TILED_O, ROOF_O

include gpu/gpu.mk

$(BUILD)/libattest.a: $(LIB_O) $(TILED_O) $(ORACLE_O) $(GPU_O)
	rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/attest: $(ATTEST_O) $(ROOF_O) $(BUILD)/libattest.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/obj/%32.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -DAT_BITS=32 -MMD -MP -c -o $@ $<
$(BUILD)/obj/%64.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -DAT_BITS=64 -MMD -MP -c -o $@ $<
# Lane loops: vectorised; no value depends on these flags.
LANE := -O3 -fno-trapping-math $(call try,-fno-loop-unroll-and-jam) -Wno-unknown-pragmas
$(BUILD)/obj/ref/fast_%.o $(BUILD)/obj/ref/bound_%.o: override CFLAGS += $(LANE)
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# -- Tests: one Check suite a file -------------------------------------------------------------
# What the suites share: random problems, holding an engine to the bound, and a malloc that fills
# with NaN and fails on demand.
SHARED_O = $(call objects,$(addprefix tests/,paint problem hold memory family))
$(BUILD)/tests/check_row: $(call objects,tests/row32 tests/row64 tests/row_steps32 tests/row_steps64)
$(BUILD)/tests/check_catalogue: \
    $(call objects,$(addprefix tests/catalogue_,softmax masks scores layout judge))
$(BUILD)/tests/check_diagnose $(BUILD)/tests/check_statistics: $(call objects,tests/ordinary)
$(BUILD)/tests/check_%: $(BUILD)/obj/tests/check_%.o $(SHARED_O) $(BUILD)/libattest.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc -o $@ $(filter %.o,$^) $(filter %.a,$^) \
	    $(shell $(PKG_CONFIG) --libs check) $(LIBS)
KILL_O = $(call objects,tests/kill_matrix tests/published tests/ordinary) $(SHARED_O)
$(BUILD)/tests/kill_matrix: $(KILL_O) $(BUILD)/libattest.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc -o $@ $^ $(shell $(PKG_CONFIG) --libs check) $(LIBS)
# Every mutant under our judge and published rules: four to six minutes.
kill-matrix: $(BUILD)/tests/kill_matrix
	$< >$(BUILD)/kill_matrix.tsv
	awk -f tests/kill_matrix.awk $(BUILD)/kill_matrix.tsv >docs/figures/kill_matrix.tsv
	tail -n 18 docs/figures/kill_matrix.tsv
	if command -v gnuplot >/dev/null; then gnuplot docs/figures/kill_matrix.gp; fi
SUITES = $(addprefix $(BUILD)/tests/check_,$(TESTS))
# The second truth is in quadruple precision.
$(BUILD)/tests/check_truth_painted: $(call objects,tests/second_truth)
$(BUILD)/tests/check_truth_painted: LIBS += -lquadmath

# Kernels as shared objects: the templates, each again with the scale applied twice, and one in C
# with every fault.
TEMPLATES = tests/peers/templates
PLUGIN = $(BUILD)/tests/plugins
PLUGINS = $(patsubst %,$(PLUGIN)/%.so,c cpp c_broken cpp_broken faulty no_engine \
            $(if $(shell rustc --version 2>/dev/null),rs rs_broken))
CXX ?= c++
plugin_cc = mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(CFLAGS) -shared -fPIC -MMD -MP
$(PLUGIN)/broken/%: $(TEMPLATES)/%
	@mkdir -p $(@D) && sed 's/x\.scale/x.scale * x.scale/' $< >$@
$(foreach l,c cpp rs,$(eval $(PLUGIN)/$l.so: $(TEMPLATES)/kernel.$l)$(eval $(PLUGIN)/$l_broken.so: $(PLUGIN)/broken/kernel.$l))
$(PLUGIN)/c.so $(PLUGIN)/c_broken.so:
	@$(plugin_cc) -o $@ $< -lm
$(PLUGIN)/cpp.so $(PLUGIN)/cpp_broken.so:
	@mkdir -p $(@D)
	@$(CXX) -O2 -Wall -Wextra -Wconversion -Iinclude -shared -fPIC -MMD -MP -o $@ $<
$(PLUGIN)/rs.so: $(TEMPLATES)/attest.rs
$(PLUGIN)/rs_broken.so: $(PLUGIN)/broken/attest.rs
$(PLUGIN)/rs.so $(PLUGIN)/rs_broken.so:
	@mkdir -p $(@D)
	@MAKEFLAGS= rustc -O -C panic=abort --crate-type cdylib -o $@ $<
$(PLUGIN)/faulty.so: tests/plugin_kernel.c
	@$(plugin_cc) -Itests -w -o $@ $< -lm
$(PLUGIN)/no_engine.so: tests/plugin_kernel.c
	@$(plugin_cc) -Itests -w -DNO_ENGINE -o $@ $< -lm
$(BUILD)/tests/check_plugin: | $(PLUGINS)

help:
	@echo "make             build $(BUILD)/attest (needs MPFR, jansson and libmd; installs nothing)"
	@echo "make demo        set up, build, judge kernels on real activations, draw the picture"
	@echo "make check       set up, build, run every test suite (under five minutes on two cores)"
	@echo "make check-bound the evidence that the bound is true, a part of check"
	@echo "make figures     draw docs/figures from data in the tree (make tightness: that data)"
	@echo "make check-long  the slow evidence: every fp32 argument of exp, more random problems"
	@echo "make kill-matrix every planted fault under our judge and under published rules, drawn"
	@echo "make check-vectors  generated suites have the same bytes from gcc, clang, -O0, -O3"
	@echo "make check-numpy judge generated vectors in ten lines of NumPy (needs PyPI and python3-venv)"
	@echo "make check-onnx  judge the 93 ONNX Attention tests (needs PyPI and python3-venv)"
	@echo "make check-sanitize, check-arm  the tiled engine's bits under sanitizers, on AArch64"
	@echo "make check-python  attest_attention.py with PyTorch and pytest, Debian's (612 MB of disk); time-python"
	@echo "make bench-peers the tiled engine beside PyTorch, onnxruntime, NumPy (needs PyPI)"
	@echo "make gpu         compile the CUDA kernels for every target (needs nvcc); GPU=1 links them in"
	@echo "make static      $(BUILD)/attest-static, one binary without shared libraries"
	@echo "make prove       check every proof (Coq, Gappa, Frama-C), the C against its twin; prove-mutants"
	@echo "make lint        format, clang-tidy, layering, no tolerance constants"
	@echo "make setup       install the Debian packages that build, check and demo need"
	@echo "make clean       remove $(BUILD)"
	@echo "Variables: CC=gcc|clang OPENMP=1|0 BUILD=$(BUILD) CI=true (warnings are errors)"
setup:
	@tests/setup.sh core check demo
# A second make, because what pkg-config says may change in between.
check: setup
	@$(MAKE) --no-print-directory check-run
check-run: $(BUILD)/attest $(SUITES)
	@ATTEST=$(BUILD)/attest tests/run.sh $(SUITES) tests/embed.sh tests/readme.sh
# The evidence that the bound is true, by itself; also in check and check-long.
BOUND = $(addprefix $(BUILD)/tests/check_,bound bound_short order simulate exhaustive families adversary)
check-bound: $(BOUND)
	@tests/run.sh $(BOUND)
# What the adversary reaches (minutes), and the figures of data in the tree.
tightness: $(BUILD)/tests/check_adversary
	LONG=1 TIGHTNESS=docs/figures/tightness.tsv $<
figures:
	@tests/setup.sh demo
	gnuplot -e "data='docs/figures/tightness.tsv'; to='docs/figures/tightness'" docs/figures/tightness.gp
	gnuplot docs/figures/kill_matrix.gp
check-long: setup
	@LONG=1 $(MAKE) --no-print-directory check-run
	@tests/setup.sh aarch64 clang && $(MAKE) --no-print-directory check-sanitize check-arm check-vectors
check-vectors: $(BUILD)/attest
	@BUILD=$(BUILD) tests/check_vectors.sh
demo: setup
	@$(MAKE) --no-print-directory demo-run
demo-run: $(BUILD)/attest
	@BUILD=$(BUILD) FULL=$(FULL) tests/demo.sh
static: $(BUILD)/attest-static
# A static binary has no loader, and so no kernels from shared objects.
STATIC_O = $(filter-out %/plugin_run.o %/plugin_child.o,$(ATTEST_O)) $(call objects,attest/plugin_static)
$(BUILD)/attest-static: $(STATIC_O) $(ROOF_O) $(BUILD)/libattest.a
	$(CC) $(CFLAGS) -static -o $@ $^ $(shell $(PKG_CONFIG) --static --libs mpfr jansson libmd) -lgmp -lm
lint:
	@tests/lint.sh
include tests/peers/generate.mk tests/peers/capture.mk tests/peers/onnx/onnx.mk proofs/prove.mk tests/peers/bench.mk tests/peers/python.mk
clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: kill-matrix all help setup check check-bound tightness figures check-run check-long check-vectors demo demo-run static \
        lint clean
.SECONDARY:
