# SPDX-License-Identifier: MIT
# make check-onnx: the 93 ONNX Attention node tests (third-party expected values) as case files
# under $(BUILD)/onnx, each judged under the arithmetic of ONNX's reference implementation.
#
# Needs PyPI once, for the packages of requirements.txt in a virtual environment; not part of check.

BUILD ?= build
ONNX_PYTHON ?= python3
ONNX := tests/peers/onnx
ONNX_VENV := $(BUILD)/venv-onnx

ONNX_RUN := PYTHONDONTWRITEBYTECODE=1 $(ONNX_VENV)/bin/python

.PHONY: check-onnx check-onnx-mutants
check-onnx: $(BUILD)/attest $(ONNX_VENV)/ready
	@$(ONNX_RUN) $(ONNX)/judge.py $(BUILD)/attest $(BUILD)/onnx
# Wrong readings of the tests and wrong arithmetics: each must fail.
check-onnx-mutants: $(BUILD)/attest $(ONNX_VENV)/ready
	@$(ONNX_RUN) $(ONNX)/mutants.py $(BUILD)/attest $(BUILD)/onnx/mutants

$(ONNX_VENV)/ready: $(ONNX)/requirements.txt
	@mkdir -p $(BUILD)
	@$(ONNX_PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	    { echo "check-onnx: no venv module; on Debian: apt-get install python3-venv"; exit 1; }
	@$(ONNX_PYTHON) -m venv --clear $(ONNX_VENV)
	@$(ONNX_VENV)/bin/pip install --quiet --retries 1 --no-deps --requirement $< || \
	    { echo "check-onnx: $< not installed; PyPI must be reachable"; exit 1; }
	@touch $@
