# SPDX-License-Identifier: MIT
# make check-python: attest_attention.py with PyTorch and pytest, in one process and in four, and
# what a call costs; then the static binary with it in an empty folder. PyTorch, for the CPU alone,
# and pytest are Debian's; CHECK_PYTHON names another Python that has both. Debian 12's is
# 1.13, of which fp8 and the fused kernel are skipped; of Debian 13's, 2.6, nothing is.
# CHECK_PYTHON=$(PYTHON_VENV)/venv/bin/python brings PyPI's newest, in gigabytes.
# make time-python: 200 configurations of S <= 2048 (CONFIGURATIONS, ROWS).
PYTHON_VENV := $(BUILD)/python
CHECK_PYTHON ?= /usr/bin/python3
CONFIGURATIONS ?= 200
ROWS ?= 16
pytest = ATTEST=$(abspath $(BUILD)/attest) PYTHONDONTWRITEBYTECODE=1 OMP_WAIT_POLICY=passive \
         $(CHECK_PYTHON) -m pytest -q -rs -p no:cacheprovider tests/peers/test_pytest.py

.PHONY: check-python time-python python-ready
check-python: $(BUILD)/attest $(BUILD)/attest-static python-ready
	$(pytest)
	$(pytest) -n 4 --deselect tests/peers/test_pytest.py::test_overhead_of_a_call
	@CHECK_PYTHON=$(CHECK_PYTHON) tests/static.sh $(BUILD)/attest-static
time-python: $(BUILD)/attest python-ready
	CONFIGURATIONS=$(CONFIGURATIONS) ROWS=$(ROWS) $(pytest) -k configurations

python-ready: $(if $(findstring $(PYTHON_VENV),$(CHECK_PYTHON)),$(PYTHON_VENV)/ready)
ifeq ($(CHECK_PYTHON),/usr/bin/python3)
	@tests/setup.sh torch
endif
$(PYTHON_VENV)/ready: tests/peers/requirements-python.txt
	@mkdir -p $(PYTHON_VENV)
	@python3 -m venv $(PYTHON_VENV)/venv || \
	    { echo "check-python: no venv module; on Debian: apt-get install python3-venv"; exit 1; }
	@$(PYTHON_VENV)/venv/bin/pip install --quiet --requirement $<
	@touch $@
