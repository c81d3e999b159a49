# The largest ratio that an adversary reached, against the number of keys, per arithmetic:
# gnuplot -e "data='docs/figures/tightness.tsv'; to='docs/figures/tightness'". Columns: arith n tile
# what ratio tried. SPDX-License-Identifier: MIT
set datafile separator '\t'
set datafile commentschars '#'
set logscale x 2
set xrange [1.7:80]
set yrange [0:1.02]
set xlabel 'keys'
set ylabel 'largest error / allowance'
set border 3
set tics nomirror
set key outside right top samplen 1.5 noenhanced
set title "How much of its bound a simulated kernel reaches, hill climbing (1: the bound itself)"
names = 'fp32,exp_ulps=1|fp32|fp32,ordered=true|eager|fp32-exp2|split-lse|fp32-libm-exp20|3xtf32|bf16-p|bf16-p-normalised|bf16-sp|bf16-tensor-core|fp16-p|onnx-fp16|fp8-p'
count = 15
name(k) = (s = names, n = k, f(s, n))
f(s, n) = n == 1 ? (strstrt(s, '|') ? s[1:strstrt(s, '|') - 1] : s) : f(s[strstrt(s, '|') + 1:strlen(s)], n - 1)
out(k) = stringcolumn(1) eq name(k) && stringcolumn(4) eq 'out' ? column(5) : NaN
set datafile missing NaN
set terminal svg size 900,440 font 'sans,12' background 'white' name 'tightness'
set output to.'.svg'
plot for [k = 1:count] data using 2:(out(k)) with linespoints lw 1.4 pt k ps 0.7 title name(k), \
    data using 2:(stringcolumn(4) eq 'lse' ? column(5) : NaN) with points pt 3 ps 1 lc rgb 'black' title 'fp32, lse'
