# The argument reduction of at_reduce64 for x <= -5/16: n is whole, the first difference exact.
x = rnd(x_);
k = rnd(x * L2E + SHIFT);
n = rnd(k - SHIFT);
r1 = rnd(n * NHI + x);
r  = rnd(n * NLO + r1);
R1 = n * NHI + x;
R  = x - n * LN2;
{ x in [-746, -10b-5] /\ LN2 + NHI + NLO in [-1b-108,1b-108] ->
   n in [-1077,0] /\ @FIX(n,0) /\ |r| <= 0.3467 /\ |r - R| <= 0x1.01p-55 }
R1 -> (x * L2E - n) / L2E + n * (1 / L2E + NHI);
x * L2E - n -> (x*L2E + SHIFT - k) + (k - SHIFT - n);
r - R -> (r - (n * NLO + r1)) + (r1 - R1) + n * (LN2 + NHI + NLO);
n * NLO + r1 -> (x * L2E - n) / L2E + n * (1 / L2E + NHI + NLO) + (r1 - R1);
