# e^r on the side R <= 0, Horner with fma: below one unit in the last place of e^R, and relatively.
# Er: e^r;  ER: e^R, R the exact reduced argument.  Exp64.v proves the hypotheses.
r = rnd(r_);
q12 = rnd(c13 * r + c12);
q11 = rnd(q12 * r + c11);
q10 = rnd(q11 * r + c10);
q9 = rnd(q10 * r + c9);
q8 = rnd(q9 * r + c8);
q7 = rnd(q8 * r + c7);
q6 = rnd(q7 * r + c6);
q5 = rnd(q6 * r + c5);
q4 = rnd(q5 * r + c4);
q3 = rnd(q4 * r + c3);
q2 = rnd(q3 * r + c2);
q1 = rnd(q2 * r + 1);
p  = rnd(q1 * r + 1);
P = ((((((((((((c13 * r + c12) * r + c11) * r + c10) * r + c9) * r + c8) * r + c7) * r + c6) * r + c5) * r + c4) * r + c3) * r + c2) * r + 1) * r + 1;
{ r in [-0.3467,1b-54] /\ P -/ Er in [-1b-57,1b-57] /\ Er in [0.7,1.0001] /\ Er -/ ER in [-0x1.02p-55,0x1.02p-55]
  -> |p - ER| <= 0x1.fp-54 /\ |p -/ ER| <= 0x1.7p-53 }
$ r in 64;
