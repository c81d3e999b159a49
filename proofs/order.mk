# What each step of check.sh needs. A step prints `ok ...` or `FAIL ...`; two run at a time.
# Run in the build folder with HERE, the folder of the scripts. SPDX-License-Identifier: MIT
FILES = Exact Sums Rounding Score Softcap Ordered RangeFree Bound RowBound Formats Range Ieee \
        Capstone Constants ExpScale Exp Exp32 Exp64 Twin ExpIeee Backward Statements
CERTIFICATES = $(foreach bits,32 64,$(foreach part,red neg pos,exp$(bits)_$(part)_gappa))
# Walking the libraries of Interval and Gappa takes seconds, so the modules that use them ask alone.
AXIOMS = $(addprefix axioms-,SExp32 SExp64 SExpIeee others)
TWINS = twin-64-rows twin-64-exp twin-32-rows
PARTS = $(TWINS) $(AXIOMS) eva-32 eva-64 wp-32 wp-64

all: $(FILES) $(if $(ONLY),,$(PARTS))

Rounding: Sums
Score: Sums Rounding
Softcap: Sums
Ordered: Sums
RangeFree: Sums Rounding
Bound: Sums Rounding
RowBound: Sums Rounding RangeFree Bound
Formats: Sums Rounding RangeFree
Range: Sums Rounding Formats
Ieee: Sums Rounding Formats Range
Capstone: Sums Rounding RangeFree Formats Range Ieee
ExpScale: Sums
Exp: Sums ExpScale
Exp32: Sums ExpScale Constants Exp $(filter exp32%,$(CERTIFICATES))
Exp64: Sums ExpScale Constants Exp $(filter exp64%,$(CERTIFICATES))
Twin: Constants Ieee
ExpIeee: Sums Formats Range Ieee ExpScale Constants Capstone Exp Exp32 Exp64 Twin
Backward: Exact
Statements: $(filter-out Statements,$(FILES))
$(AXIOMS): Statements
$(TWINS): twin
twin: Twin

$(FILES):
	@$(HERE)/one.sh coq $@ $^
$(CERTIFICATES):
	@$(HERE)/one.sh gappa $@
$(AXIOMS):
	@$(HERE)/axioms.sh $(@:axioms-%=%)
twin:
	@$(HERE)/check-twin.sh
$(TWINS):
	@$(HERE)/check-twin.sh $(subst -, ,$(@:twin-%=%))
eva-32 eva-64:
	@$(HERE)/check-eva.sh $(@:eva-%=%)
wp-32 wp-64:
	@$(HERE)/check-wp.sh $(@:wp-%=%)
.PHONY: all $(FILES) $(CERTIFICATES) $(AXIOMS) twin $(TWINS) eva-32 eva-64 wp-32 wp-64
