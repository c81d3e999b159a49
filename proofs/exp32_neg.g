# e^r on the side R <= 0, Horner with fma: below one unit in the last place of e^R, and relatively.
# Er: e^r;  ER: e^R, R the exact reduced argument.  Exp32.v proves the hypotheses.
r = rnd(r_);
q5 = rnd(c6 * r + c5);
q4 = rnd(q5 * r + c4);
q3 = rnd(q4 * r + c3);
q2 = rnd(q3 * r + c2);
q1 = rnd(q2 * r + 1);
p  = rnd(q1 * r + 1);
P = (((((c6 * r + c5) * r + c4) * r + c3) * r + c2) * r + 1) * r + 1;
{ r in [-0.3467,1.6e-8] /\ P -/ Er in [-3.7e-9,3.7e-9] /\ Er in [0.7,1.0001] /\ Er -/ ER in [-1.51e-8,1.51e-8]
  -> |p - ER| <= 0x1.fp-25 /\ |p -/ ER| <= 0x1.7p-24 }
$ r in 64;
