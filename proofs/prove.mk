# The proofs; included by the main Makefile.  SPDX-License-Identifier: MIT
prove-setup:
	@tests/setup.sh core prove
# A whole check: constants, certificates, Coq, axioms, the C against its twin (LONG=1: more
# sets; SETS=, SEED=), Frama-C.
prove: prove-setup
	@BUILD=$(abspath $(BUILD))/proofs proofs/check.sh
# Five faults, each of which must break the check.
prove-mutants: prove-setup
	@BUILD=$(abspath $(BUILD))/proofs proofs/mutants.sh
.PHONY: prove prove-setup prove-mutants
