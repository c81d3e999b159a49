# The check and the benchmark library of tests/gpu.sh: include/, gpu/ and the engines of ref/ that need
# no MPFR. SPDX-License-Identifier: MIT
BUILD ?= build/gpu-build
CFLAGS ?= -O2 -g
GPU_ARCHS ?= 90
GPU = 1
override CFLAGS += -std=c11 -ffp-contract=off -fno-math-errno -fopenmp -fPIC -Wall -Wextra -Wno-unknown-pragmas
override CPPFLAGS += -Iinclude -Iref -Itests -I$(BUILD)/stub -D_POSIX_C_SOURCE=200809L
REF_O = $(addprefix $(BUILD)/obj/ref/,attention.o validate.o $(foreach b,32 64,scalar$(b).o standard$(b).o state$(b).o))

all: $(BUILD)/gpu_check $(BUILD)/libgpu_bench.so
include gpu/gpu.mk
NVCC_FLAGS += -Xptxas -v -Xcompiler -fPIC $(EXTRA)
DEVICE_O = $(CUDA_O) $(addprefix $(BUILD)/obj/gpu/,evidence.o cuda/engines.o cuda/present.o)

$(BUILD)/gpu_check: $(BUILD)/obj/tests/gpu_check.o $(BUILD)/obj/tests/gpu_alone.o $(REF_O) $(DEVICE_O)
	$(NVCC) -Xcompiler -fopenmp -o $@ $^ -lm
$(BUILD)/libgpu_bench.so: $(BUILD)/obj/tests/gpu_bench.o $(BUILD)/obj/tests/gpu_alone.o $(REF_O) $(DEVICE_O)
	$(NVCC) -Xcompiler -fopenmp -shared -o $@ $^ -lm
$(BUILD)/obj/%32.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -DAT_BITS=32 -c -o $@ $<
$(BUILD)/obj/%64.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -DAT_BITS=64 -c -o $@ $<
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
.PHONY: all

-include $(shell find $(BUILD) -name "*.d" 2>/dev/null)
