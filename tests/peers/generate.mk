# SPDX-License-Identifier: MIT
# make check-numpy: the painting formula and a kernel author's test in NumPy, on the must-show request.
#
# Needs PyPI once, for the packages of requirements-generate.txt; not part of check.

VECTORS := $(BUILD)/vectors-numpy
VECTORS_PYTHON := PYTHONDONTWRITEBYTECODE=1 $(BUILD)/venv-generate/bin/python

.PHONY: check-numpy
check-numpy: $(BUILD)/attest $(BUILD)/venv-generate/ready
	@PYTHON="$(VECTORS_PYTHON)" tests/peers/generate.sh $(BUILD)/attest $(VECTORS)

$(BUILD)/venv-generate/ready: tests/peers/requirements-generate.txt
	@mkdir -p $(BUILD)
	@python3 -m venv --clear $(BUILD)/venv-generate
	@$(BUILD)/venv-generate/bin/pip install --quiet --retries 1 --no-deps --requirement $< || \
	    { echo "check-numpy: $< not installed; PyPI must be reachable"; exit 1; }
	@touch $@
