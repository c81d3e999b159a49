# Error and allowance, row by row: gnuplot -e "data='build/demo/demo.dat'; to='build/demo/demo'".
# Columns: head row error allowed assert_close; one data set a panel. SPDX-License-Identifier: MIT
set datafile commentschars '#'
set logscale y
set format y '10^{%L}'
set xlabel 'query row' offset 0,0.4
set xrange [-2:161]
set border 3
set tics nomirror
set key top left horizontal samplen 1.5 font ',9' noenhanced
# One head of the data set; an error of 0 has no place on a log axis and is drawn on the lower edge.
row(head) = head == h ? column(2) : NaN
low(x) = x > floor_ ? x : floor_

set macros
PANEL = "data index i using (row($1)):5 with lines dt 2 lc rgb '#888888' title 'assert_close allows', \
    data index i using (row($1)):(low($4)) with lines lw 1.3 lc rgb '#1b7837' title 'this arithmetic allows', \
    data index i using (row($1)):(low($3)) with points pt 7 ps 0.4 lc rgb '#2166ac' title 'error', \
    data index i using (row($1)):($3 > $4 ? $3 : NaN) with points pt 6 ps 1.3 lw 1.8 lc rgb '#b2182b' title 'outside'"

do for [k = 0:1] {
    if (k == 0) {
        set terminal svg size 1300,440 font 'sans,12' background 'white' name 'demo'
        set output to.'.svg'
    } else {
        set terminal pngcairo size 1300,440 font 'sans,10' background 'white'
        set output to.'.png'
    }
    set multiplot layout 1,3
    set ylabel '|got - truth| in the column nearest its border' offset 1,0
    i = 0; h = 0; floor_ = 1e-9; set yrange [floor_:1e-3]
    set title "Ours, fp32, key tiles of 64 (layer 0, head 0): pass\nevery error lies below its allowance" noenhanced
    plot @PANEL
    unset ylabel
    i = 1; h = 0; floor_ = 1e-7; set yrange [floor_:1]
    set title "H200 flash, bf16, held to P in bf16 (layer 7, head 0): pass\nthough assert_close calls some of it wrong" noenhanced
    plot @PANEL
    i = 2; h = 2; floor_ = 1e-10; set yrange [floor_:1e-2]
    set title "One key lost at a tile border (layer 18, head 2): fail\nthough assert_close sees nothing" noenhanced
    plot @PANEL
    unset multiplot
    unset output
}
