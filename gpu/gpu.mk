# SPDX-License-Identifier: MIT
# Kernels in CUDA C. Always: the emulation, by a C++ compiler (no C++ library is linked). Where nvcc
# is: `make gpu` compiles every kernel for every target, and `make GPU=1` links the device's engines
# into the program; without that gpu/absent.c stands in for them.
NVCC ?= nvcc
CXX ?= c++
CUDA ?= $(patsubst %/bin/nvcc,%,$(realpath $(shell command -v $(NVCC))))
GPU ?= 0
override CPPFLAGS += -Igpu

GPU_FLAGS = -std=c++17 -fno-exceptions -fno-rtti -ffp-contract=off -fno-math-errno -Wall -Wextra -Wno-unknown-pragmas \
            $(filter -O% -g% -f% -m% -Wno-unknown-pragmas -Werror,$(CFLAGS)) -Iinclude -Igpu
NVCC_FLAGS = -std=c++17 -O3 --fmad=false -Iinclude -Igpu
NEWEST = $(patsubst compute_%,%,$(lastword $(shell $(NVCC) --list-gpu-arch 2>/dev/null)))
sm = -gencode=arch=compute_$(1),code=sm_$(1)
# GPU_ARCHS: "80 90 and the newest" for CI; a machine that only runs may say GPU_ARCHS=90.
GPU_ARCHS ?= 80 90 $(NEWEST)

EMULATED_O = $(foreach k,attention decode,$(BUILD)/obj/gpu/emulated/$(k)32.o \
                                          $(BUILD)/obj/gpu/emulated/$(k)64.o)
CUDA_O = $(foreach k,attention decode,$(BUILD)/obj/gpu/cuda/$(k)32.o $(BUILD)/obj/gpu/cuda/$(k)64.o) \
         $(BUILD)/obj/gpu/cuda/mma.o $(BUILD)/obj/gpu/cuda/wgmma.o
GPU_O = $(EMULATED_O) $(BUILD)/obj/gpu/engines.o $(BUILD)/obj/gpu/evidence.o
ifeq ($(GPU),1)
GPU_O += $(CUDA_O) $(BUILD)/obj/gpu/cuda/engines.o $(BUILD)/obj/gpu/cuda/present.o
LIBS += -L$(CUDA)/lib64 -lcudart_static -lstdc++ -ldl -lrt -lpthread
else
GPU_O += $(BUILD)/obj/gpu/absent.o
endif

$(BUILD)/obj/gpu/emulated/%32.o: gpu/%.cu
	@mkdir -p $(@D)
	$(CXX) -x c++ $(GPU_FLAGS) -DAT_BITS=32 -MMD -MP -c -o $@ $<
$(BUILD)/obj/gpu/emulated/%64.o: gpu/%.cu
	@mkdir -p $(@D)
	$(CXX) -x c++ $(GPU_FLAGS) -DAT_BITS=64 -MMD -MP -c -o $@ $<
$(BUILD)/obj/gpu/cuda/%32.o: gpu/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) $(foreach a,$(GPU_ARCHS),$(call sm,$(a))) -DAT_BITS=32 -MMD -MP -c -o $@ $<
$(BUILD)/obj/gpu/cuda/%64.o: gpu/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) $(foreach a,$(GPU_ARCHS),$(call sm,$(a))) -DAT_BITS=64 -MMD -MP -c -o $@ $<
$(BUILD)/obj/gpu/cuda/mma.o: gpu/mma.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) $(foreach a,$(GPU_ARCHS),$(call sm,$(a))) -MMD -MP -c -o $@ $<
$(BUILD)/obj/gpu/cuda/wgmma.o: gpu/wgmma.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) $(call sm,90a) -MMD -MP -c -o $@ $<
$(BUILD)/obj/gpu/cuda/engines.o: gpu/engines.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -DAT_CUDA -MMD -MP -c -o $@ $<
$(BUILD)/obj/gpu/cuda/present.o: gpu/present.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -isystem $(CUDA)/include -MMD -MP -c -o $@ $< \
	  '-DAT_CUDA_ARCHS="$(foreach a,$(GPU_ARCHS),sm_$(a)) sm_90a"'

gpu: $(CUDA_O)
	@echo "gpu: attention, decode and mma for sm_80, sm_90, sm_$(NEWEST); wgmma for sm_90a"
.PHONY: gpu
