# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,462 font "sans-serif,14" background "#ffffff"
set output "speedup.svg"
set label "lab-strategies: speedup (partial: 15 of 16 cells)" at screen 0.01667,0.95671 left
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.08078
set rmargin at screen 0.70572
set tmargin at screen 0.87879
set bmargin at screen 0.14286
set xrange [0:4.2]
set xtics nomirror scale 0.5 ("0" 0, "1" 1, "2" 2, "3" 3, "4" 4)
set xlabel "devices / devices of the baseline"
set yrange [0:4.2]
set ytics nomirror scale 0.5 ("0" 0, "1" 1, "2" 2, "3" 3, "4" 4)
set ylabel "speedup"
set arrow 1 from 0,0 to 4.2,4.2 nohead back linecolor rgb "#606060" dashtype 2
set label "ideal" at 4.2,4.2 right offset character -3,-0.6
set arrow from screen 0.71961,0.31808 to screen 0.76683,0.31808 nohead dashtype 1 linewidth 1.5 linecolor rgb "#011948"
set label "single" at screen 0.74322,0.31808 left offset character 3,-0.12 point pointtype 7 pointsize 0.8 linecolor rgb "#011948"
$s0 << EOD
1 1 NaN NaN 1
EOD
set arrow from screen 0.71961,0.71431 to screen 0.76683,0.71431 nohead dashtype 2 linewidth 1.5 linecolor rgb "#e2781c"
set label "ddp" at screen 0.74322,0.71431 left offset character 3,-0.12 point pointtype 5 pointsize 0.8 linecolor rgb "#e2781c"
$s1 << EOD
2 1.825356769 NaN NaN NaN
2 1.835229675 NaN NaN 1.835229675
4 3.261315578 NaN NaN 3.261315578
EOD
set arrow from screen 0.71961,0.67383 to screen 0.76683,0.67383 nohead dashtype 3 linewidth 1.5 linecolor rgb "#41a58d"
set label "fsdp" at screen 0.74322,0.67383 left offset character 3,-0.12 point pointtype 9 pointsize 0.8 linecolor rgb "#41a58d"
$s2 << EOD
2 1.757092148 NaN NaN NaN
2 1.783574815 NaN NaN 1.783574815
4 3.140412284 NaN NaN 3.140412284
EOD
set arrow from screen 0.71961,0.45236 to screen 0.76683,0.45236 nohead dashtype 4 linewidth 1.5 linecolor rgb "#65310f"
set label "deepspeed" at screen 0.74322,0.45236 left offset character 3,-0.12 point pointtype 13 pointsize 0.8 linecolor rgb "#65310f"
$s3 << EOD
2 0.857974999 NaN NaN NaN
2 1.06856194 NaN NaN 1.06856194
4 1.766355582 NaN NaN 1.766355582
EOD
set arrow from screen 0.71961,0.19908 to screen 0.76683,0.19908 nohead dashtype 1 linewidth 1.5 linecolor rgb "#9c58c8"
set label "deepspeed\137stage\1373" at screen 0.74322,0.19908 left offset character 3,-0.12 point pointtype 11 pointsize 0.8 linecolor rgb "#9c58c8"
$s4 << EOD
2 0.3205851027 NaN NaN NaN
2 0.3208766986 NaN NaN 0.3208766986
EOD
set datafile missing "NaN"
plot $s0 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#011948", \
     $s0 using 1:2:3:4 with yerrorbars linecolor rgb "#011948" pointtype 7 pointsize 0.4, \
     $s0 using 1:2 with points linecolor rgb "#011948" pointtype 7 pointsize 0.8, \
     $s1 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 2 linewidth 1.5 linecolor rgb "#e2781c", \
     $s1 using 1:2:3:4 with yerrorbars linecolor rgb "#e2781c" pointtype 5 pointsize 0.4, \
     $s1 using 1:2 with points linecolor rgb "#e2781c" pointtype 5 pointsize 0.8, \
     $s2 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 3 linewidth 1.5 linecolor rgb "#41a58d", \
     $s2 using 1:2:3:4 with yerrorbars linecolor rgb "#41a58d" pointtype 9 pointsize 0.4, \
     $s2 using 1:2 with points linecolor rgb "#41a58d" pointtype 9 pointsize 0.8, \
     $s3 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 4 linewidth 1.5 linecolor rgb "#65310f", \
     $s3 using 1:2:3:4 with yerrorbars linecolor rgb "#65310f" pointtype 13 pointsize 0.4, \
     $s3 using 1:2 with points linecolor rgb "#65310f" pointtype 13 pointsize 0.8, \
     $s4 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#9c58c8", \
     $s4 using 1:2:3:4 with yerrorbars linecolor rgb "#9c58c8" pointtype 11 pointsize 0.4, \
     $s4 using 1:2 with points linecolor rgb "#9c58c8" pointtype 11 pointsize 0.8
