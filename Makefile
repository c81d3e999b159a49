# attest: exact blocked attention, its truth, and the judge. `make help` lists the targets.
# SPDX-License-Identifier: MIT
BUILD ?= build
CC ?= cc
OPENMP ?= 1
# Library paths of MPFR (with GMP) and jansson come from pkg-config, whatever the prefix.
PKG_CONFIG ?= pkg-config

WARN = -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
ifeq ($(CI),true)
WARN += -Werror
endif
CFLAGS ?= -O2 -g
CPPFLAGS += -Iinclude -Iref -Ioracle -D_POSIX_C_SOURCE=200809L
# The bits and the bound hold for IEEE arithmetic without contraction.
override CFLAGS += -std=c11 -ffp-contract=off -fno-math-errno $(WARN)
ifeq ($(OPENMP),1)
override CFLAGS += -fopenmp
endif
LIBS = $(shell $(PKG_CONFIG) --libs mpfr jansson) -lgmp -lm
override CPPFLAGS += $(shell $(PKG_CONFIG) --cflags mpfr jansson)

# -- What there is ---------------------------------------------------------------------------
REF = attention validate convert format truth bound compare arith
REF_BOTH = scalar standard state# compiled once for fp32 and once for fp64
ORACLE = tensors case judge rows
ATTEST = main args report judge check run truth trace show list
TESTS = row math index format plan truth bound compare engines tensors case program

objects = $(addprefix $(BUILD)/,$(addsuffix .o,$(1)))
LIB_O = $(call objects,$(addprefix ref/,$(REF)) $(addsuffix 32,$(addprefix ref/,$(REF_BOTH))) \
                       $(addsuffix 64,$(addprefix ref/,$(REF_BOTH))))
ORACLE_O = $(call objects,$(addprefix oracle/,$(ORACLE)))
ATTEST_O = $(call objects,$(addprefix attest/,$(ATTEST)))

all: $(BUILD)/attest

$(BUILD)/libattest.a: $(LIB_O) $(ORACLE_O)
	rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/attest: $(ATTEST_O) $(BUILD)/libattest.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/%32.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -DAT_BITS=32 -MMD -MP -c -o $@ $<
$(BUILD)/%64.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -DAT_BITS=64 -MMD -MP -c -o $@ $<
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# -- Tests: one Check suite a file -------------------------------------------------------------
$(BUILD)/tests/check_%: $(BUILD)/tests/check_%.o $(BUILD)/libattest.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs check) $(LIBS)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all
.SECONDARY:
