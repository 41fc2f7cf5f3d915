# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,434 font "sans-serif,14" background "#ffffff"
set output "time.svg"
set label "plots: time breakdown" at screen 0.01667,0.95392 left
set label "waiting for data was not measured: it is part of the training" at screen 0.01667,0.03226 left textcolor rgb "#505050"
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.19317
set rmargin at screen 0.96467
set tmargin at screen 0.74654
set bmargin at screen 0.19355
set xrange [0:418.6993226]
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
set label "start-up" at screen 0.03333,0.89401 left offset character 1,0 point pointtype 5 linecolor rgb "#011948"
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
set label "exposed communication" at screen 0.50000,0.89401 left offset character 1,0 point pointtype 5 linecolor rgb "#e2781c"
$s1 << EOD
4.6 8.355551953 1
4.6 12.67579369 2
4.6 21.46376517 3
5.2 9.196179462 4
5.2 14.75266509 5
5.2 25.47954807 6
8.8 11.38927464 7
8.8 17.3322747 8
8.8 27.46663856 9
EOD
set label "compute" at screen 0.03333,0.85253 left offset character 1,0 point pointtype 5 linecolor rgb "#41a58d"
$s2 << EOD
4.3 402.2895319 0
8.355551953 213.2401184 1
12.67579369 228.9310795 2
21.46376517 238.8205524 3
9.196179462 116.2114057 4
14.75266509 137.876735 5
25.47954807 146.0321789 6
11.38927464 44.75951748 7
17.3322747 68.05092926 8
27.46663856 73.61409633 9
EOD
set label "evaluation" at screen 0.50000,0.85253 left offset character 1,0 point pointtype 5 linecolor rgb "#65310f"
$s3 << EOD
402.2895319 407.7895319 0
213.2401184 218.7401184 1
228.9310795 234.4310795 2
238.8205524 244.3205524 3
116.2114057 121.7114057 4
137.876735 143.376735 5
146.0321789 151.5321789 6
44.75951748 50.25951748 7
68.05092926 73.55092926 8
73.61409633 79.11409633 9
EOD
set label "launch, end and everything else" at screen 0.03333,0.81106 left offset character 1,0 point pointtype 5 linecolor rgb "#9c58c8"
$s4 << EOD
407.7895319 410.4895319 0
218.7401184 221.6401184 1
234.4310795 237.3310795 2
244.3205524 247.2205524 3
121.7114057 125.0114057 4
143.376735 146.676735 5
151.5321789 154.8321789 6
50.25951748 55.95951748 7
73.55092926 79.25092926 8
79.11409633 84.81409633 9
EOD
set style fill solid 1 border rgb "#ffffff"
plot $s0 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#011948", \
     $s1 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#e2781c", \
     $s2 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#41a58d", \
     $s3 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#65310f", \
     $s4 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#9c58c8"
