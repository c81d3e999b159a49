# The proofs; included by the main Makefile.  SPDX-License-Identifier: MIT
PROVE_PACKAGES = coq ocaml-nox ocaml-findlib libcoq-flocq libcoq-interval libcoq-coquelicot gappa libcoq-gappa python3 gcc libc6-dev
# Optional: with them the real headers are also analysed for runtime errors (0.6 GB).
PROVE_OPTIONAL = frama-c-base why3 z3 cvc4

prove-setup:
	@proofs/setup.sh $(PROVE_PACKAGES)
prove: prove-setup
	@BUILD=$(BUILD)/proofs proofs/check.sh
# Five faults, each of which must break a proof.
prove-mutants: prove-setup
	@BUILD=$(BUILD)/proofs proofs/mutants.sh
.PHONY: prove prove-setup prove-mutants
