# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,438 font "sans-serif,14" background "#ffffff"
set output "time.svg"
set label "plots: time breakdown" at screen 0.01667,0.95434 left
set label "waiting for data was not measured: it is part of the training" at screen 0.01667,0.03196 left textcolor rgb "#505050"
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.18028
set rmargin at screen 0.96667
set tmargin at screen 0.74886
set bmargin at screen 0.20091
set xrange [0:417.87462]
set xtics nomirror scale 0.5 ("0" 0, "100" 100, "200" 200, "300" 300, "400" 400)
set xlabel "seconds"
set yrange [9.5:-0.5]
unset ytics
set label "single 1×1" at graph 0, first 0 right offset character -0.8,0
set label "ddp 1×2" at graph 0, first 1 right offset character -0.8,0
set label "fsdp 1×2" at graph 0, first 2 right offset character -0.8,0
set label "deepspeed 1×2" at graph 0, first 3 right offset character -0.8,0
set label "ddp 2×2" at graph 0, first 4 right offset character -0.8,0
set label "fsdp 2×2" at graph 0, first 5 right offset character -0.8,0
set label "deepspeed 2×2" at graph 0, first 6 right offset character -0.8,0
set label "ddp 4×4" at graph 0, first 7 right offset character -0.8,0
set label "fsdp 4×4" at graph 0, first 8 right offset character -0.8,0
set label "deepspeed 4×4" at graph 0, first 9 right offset character -0.8,0
set label "start-up" at screen 0.03333,0.89498 left offset character 1,0 point pointtype 5 linecolor rgb "#011948"
$s0 << EOD
0 4.3 0
0 4.6 1
0 4.6 2
0 4.6 3
0 5.2 4
0 5.2 5
0 5.2 6
0 8.8 7
0 8.8 8
0 8.8 9
EOD
set label "exposed communication" at screen 0.50000,0.89498 left offset character 1,0 point pointtype 5 linecolor rgb "#e2781c"
$s1 << EOD
4.6 8.362 1
4.6 12.665 2
4.6 21.392 3
5.2 9.173 4
5.2 14.764 5
5.2 25.442 6
8.8 11.378 7
8.8 17.308 8
8.8 27.509 9
EOD
set label "compute" at screen 0.03333,0.85388 left offset character 1,0 point pointtype 5 linecolor rgb "#41a58d"
$s2 << EOD
4.3 401.481 0
8.362 213.591 1
12.665 228.642 2
21.392 237.821 3
9.173 115.573 4
14.764 138.034 5
25.442 145.771 6
11.378 44.604 7
17.308 67.882 8
27.509 73.761 9
EOD
set label "evaluation" at screen 0.50000,0.85388 left offset character 1,0 point pointtype 5 linecolor rgb "#65310f"
$s3 << EOD
401.481 406.981 0
213.591 219.091 1
228.642 234.142 2
237.821 243.321 3
115.573 121.073 4
138.034 143.534 5
145.771 151.271 6
44.604 50.104 7
67.882 73.382 8
73.761 79.261 9
EOD
set label "launch, end and everything else" at screen 0.03333,0.81279 left offset character 1,0 point pointtype 5 linecolor rgb "#9c58c8"
$s4 << EOD
406.981 409.681 0
219.091 221.991 1
234.142 237.042 2
243.321 246.221 3
121.073 124.373 4
143.534 146.834 5
151.271 154.571 6
50.104 55.804 7
73.382 79.082 8
79.261 84.961 9
EOD
set style fill solid 1 border rgb "#ffffff"
plot $s0 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#011948", \
     $s1 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#e2781c", \
     $s2 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#41a58d", \
     $s3 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#65310f", \
     $s4 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#9c58c8"
