# The kill matrix: share of the cases that each rule fails, a line a kernel. make kill-matrix
# SPDX-License-Identifier: MIT
set terminal svg size 980,1700 font "sans,10" background "white"
set output "docs/figures/kill_matrix.svg"
table = "docs/figures/kill_matrix.tsv"
set datafile separator "\t"
set datafile missing "-"
set palette defined (0 "#c8d8e8", 1 "#103860")
set cbrange [0:1]
set cblabel "share of the cases where it has an effect that fail it (a correct kernel: of all)"
unset key
stats table using 0 skip 1 nooutput
n = STATS_records
set yrange [n - 0.4:-0.6]
set xrange [1.3:30.7]
set xtics rotate by 60 right nomirror
set xtics ("judge" 2, "confidence" 3, "assert\\_close" 4, "allclose" 5, "flash 2x" 6, "cosine" 7, \
    "rms" 8, "FlashMLA" 9, "hipDNN" 10, "judge" 11, "confidence" 12, "assert\\_close" 13, \
    "allclose" 14, "flash 2x" 15, "cosine" 16, "rms" 17, "FlashMLA" 18, "hipDNN" 19)
do for [c = 20:30] {
    set xtics add (word(system(sprintf("head -1 %s | cut -f%d", table, c)), 1) c)
}
do for [x in "10.5 19.5"] {
    set arrow from x, graph 0 to x, graph 1 nohead lc "white" lw 4 front
}
set label "ordinary inputs, fp32" at 6, -1.2 center
set label "ordinary inputs, bf16" at 15, -1.2 center
set label "intervals of the generated suites" at 25, -1.2 center
set title "Planted faults and correct kernels" offset 0,1
plot for [c = 2:30] table using (c):0:(column(c)):ytic(1) skip 1 with points pt 5 ps 1.4 palette
