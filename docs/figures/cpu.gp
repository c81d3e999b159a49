# The tiled engine on a CPU: its share of the ceiling and its peers', N^2 time, O(N) memory.
#     gnuplot docs/figures/cpu.gp          reads docs/figures/cpu.dat, writes build/cpu.svg
# cpu.dat says where its columns come from. SPDX-License-Identifier: MIT
set terminal svg size 900,700 font "sans,12" background "white" name "cpu"
set output "build/cpu.svg"
set datafile missing "-"
data = "docs/figures/cpu.dat"
set multiplot layout 2,2
set logscale x 2
set xrange [200:20000]
set grid
set key top left samplen 1.5 font ",9"
set xlabel "N queries x N keys, D = 64, fp32, one thread"
set ylabel "share of the FMA peak"
set yrange [0:1.35]
plot 1 with lines dt 2 lc rgb "#888888" title "FMA peak measured alongside", \
     data using 1:7 with linespoints title "tiled", \
     data using 1:($7/$3) with linespoints title "PyTorch flash", \
     data using 1:($7/$4) with linespoints title "onnxruntime", \
     data using 1:($7/$5) with linespoints title "NumPy (OpenBLAS)"
set ylabel "processor time of a peer over ours"
set yrange [0:3]
plot 1 with lines dt 2 lc rgb "#888888" title "tiled", \
     data using 1:3 with linespoints title "PyTorch flash", \
     data using 1:4 with linespoints title "onnxruntime", \
     data using 1:5 with linespoints title "NumPy (OpenBLAS)"
set logscale y
set yrange [*:*]
set ylabel "time (ms)"
plot data using 1:2 with linespoints title "tiled", 1.6e-5*x*x with lines dt 2 title "N^2"
set ylabel "bytes"
plot data using 1:6 with linespoints title "tiled, workspace", \
     16*64*x with lines title "inputs and output", \
     4*x*x with lines dt 2 title "S, had it been stored"
unset multiplot
