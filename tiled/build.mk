# SPDX-License-Identifier: MIT
# tiled/ is compiled for both working types and for each instruction set; the engine picks at run
# time, so one binary serves every machine. The flags are measured: tile.h says which matter.
machine := $(shell $(CC) -dumpmachine 2>/dev/null)
try = $(shell $(CC) $(1) -Werror -c -x c /dev/null -o /dev/null 2>/dev/null && echo $(1))
ISAS := base
ifneq ($(filter x86_64%,$(machine)),)
ISAS += v3 v4
override CPPFLAGS += -DTILED_X86
endif
FAST := -O3 -fno-trapping-math $(call try,-fno-tree-loop-distribute-patterns)
v3_FLAGS := -mavx2 -mfma -mprefer-vector-width=256
v4_FLAGS := -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512
TILED_O := $(call objects,tiled/dispatch $(foreach i,$(ISAS),tiled/engine-$(i) \
             $(foreach f,attend decode,tiled/$(f)-$(i)-32 tiled/$(f)-$(i)-64)))

tiled_cc = $(CC) $(CPPFLAGS) $(CFLAGS) $(FAST) $($(1)_FLAGS) -MMD -MP -c -DTILED_ISA=$(2)
define tiled_rules
$(BUILD)/obj/tiled/%-$(1)-32.o: tiled/%.c
	@mkdir -p $$(@D)
	$(call tiled_cc,$(1),$(1)) -DAT_BITS=32 -o $$@ $$<
$(BUILD)/obj/tiled/%-$(1)-64.o: tiled/%.c
	@mkdir -p $$(@D)
	$(call tiled_cc,$(1),$(1)) -DAT_BITS=64 -o $$@ $$<
$(BUILD)/obj/tiled/engine-$(1).o: tiled/engine.c
	@mkdir -p $$(@D)
	$(call tiled_cc,base,$(1)) -o $$@ $$<
endef
$(foreach i,$(ISAS),$(eval $(call tiled_rules,$(i))))

# Bit equality with scalar, without Check and MPFR's library: replay by hand, sanitizers, emulators.
BITS_O := $(call objects,tests/bits tests/bits_problem)
$(BUILD)/tests/bits: $(call objects,tests/bits_main) $(BITS_O) $(TILED_O) \
                     $(call objects,ref/attention ref/validate ref/format ref/scalar32 ref/scalar64 \
                                    ref/standard32 ref/standard64 ref/state32 ref/state64)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Wl,--gc-sections $(LDFLAGS) -o $@ $^ $(MPFR) -lm
$(BUILD)/tests/check_tiled: $(BITS_O)
MPFR ?= -lmpfr -lgmp

# The roof that attest bench measures alongside, for the same instruction sets.
ROOF_O := $(call objects,attest/roof $(foreach i,$(ISAS),attest/roof_kernel-$(i)))
define roof_rules
$(BUILD)/obj/attest/roof_kernel-$(1).o: attest/roof_kernel.c
	@mkdir -p $$(@D)
	$(call tiled_cc,$(1),$(1)) -o $$@ $$<
endef
$(foreach i,$(ISAS),$(eval $(call roof_rules,$(i))))

# -- The same bits elsewhere -------------------------------------------------------------------
SANE_N ?= 300# problems under a sanitizer
ARM_N ?= 300# and under the emulator
native := $(if $(filter x86_64%,$(machine)),-mavx2 -mfma)
sane = $(MAKE) --no-print-directory machine=none BUILD=$(BUILD)/$(1) FAST="-O1 -fno-trapping-math"
# Threads: clang, whose OpenMP runtime tells the sanitizer of its barriers (libarcher, libomp-dev).
check-sanitize:
	+$(call sane,asan) CFLAGS="-O1 -g $(native) -fsanitize=address,undefined \
	    -fno-sanitize-recover=all" $(BUILD)/asan/tests/bits
	OMP_WAIT_POLICY=passive $(BUILD)/asan/tests/bits 0xa5a $(SANE_N)
	+$(call sane,tsan) CC=clang CFLAGS="-O1 -g $(native) -fsanitize=thread" $(BUILD)/tsan/tests/bits
	OMP_WAIT_POLICY=passive TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
	    $(BUILD)/tsan/tests/bits 0x75a $(SANE_N)
# Debian: gcc-aarch64-linux-gnu qemu-user. Headers alone of MPFR and GMP are needed, and no library.
check-arm:
	@command -v aarch64-linux-gnu-gcc qemu-aarch64 >/dev/null || \
	    { echo "skipped: apt-get install gcc-aarch64-linux-gnu qemu-user"; exit 1; }
	mkdir -p $(BUILD)/arm/headers
	cp $(wildcard /usr/include/mpfr.h /usr/include/*/gmp.h /usr/include/gmp.h) $(BUILD)/arm/headers
	+$(MAKE) --no-print-directory CC=aarch64-linux-gnu-gcc BUILD=$(BUILD)/arm PKG_CONFIG=false MPFR= \
	    CPPFLAGS="-isystem $(BUILD)/arm/headers" CFLAGS="-O2 -ffunction-sections -fdata-sections" \
	    LDFLAGS=-static $(BUILD)/arm/tests/bits
	OMP_WAIT_POLICY=passive qemu-aarch64 $(BUILD)/arm/tests/bits 0xa64 $(ARM_N)
.PHONY: check-sanitize check-arm
