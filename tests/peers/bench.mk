# SPDX-License-Identifier: MIT
# make bench-peers: the tiled engine beside PyTorch, onnxruntime, NumPy (OpenBLAS) and, where Debian's
# libdnnl2 is, oneDNN: same arrays, same threads, interleaved.
# PEERS_ARGS: --quick, --rounds R, --only TEXT, --json FILE; THREADS=T.
BUILD ?= build
BENCH := $(BUILD)/bench
BENCH_PYTHON ?= python3
BENCH_SO_O := $(addprefix $(BENCH)/pic/obj/ref/,attention.o validate.o format.o scalar32.o scalar64.o \
                standard32.o standard64.o state32.o state64.o) $(BENCH)/pic/obj/tests/peers/bench_call.o

.PHONY: bench-peers
bench-peers: $(BENCH)/venv/ready $(BENCH)/attest.so
	PYTHONDONTWRITEBYTECODE=1 $(BENCH)/venv/bin/python tests/peers/bench_peers.py \
	    --library $(BENCH)/attest.so $(PEERS_ARGS)

$(BENCH)/venv/ready: tests/peers/requirements-bench.txt
	$(BENCH_PYTHON) -m venv $(BENCH)/venv || \
	    { echo "bench-peers: no venv module; on Debian: apt-get install python3-venv"; exit 1; }
	$(BENCH)/venv/bin/pip install --quiet --requirement $<
	touch $@

# The same objects once more, position-independent.
$(BENCH)/attest.so: $(wildcard tiled/*.[ch] ref/*.[ch] include/*.h) tests/peers/bench_call.c
	$(MAKE) --no-print-directory BUILD=$(BENCH)/pic CFLAGS="-O2 -fPIC" $(BENCH_SO_O) \
	    $(patsubst $(BUILD)/%,$(BENCH)/pic/%,$(TILED_O))
	$(CC) -shared -fopenmp -o $@ $(BENCH_SO_O) $(patsubst $(BUILD)/%,$(BENCH)/pic/%,$(TILED_O)) \
	    $(LIBS)
