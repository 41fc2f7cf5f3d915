# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,484 font "sans-serif,14" background "#ffffff"
set output "speedup.svg"
set label "lab-strategies: speedup (partial: 15 of 16 cells)" at screen 0.01667,0.95868 left
set label "hollow: predicted by USL" at screen 0.01667,0.02893 left textcolor rgb "#505050"
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.10556
set rmargin at screen 0.74139
set tmargin at screen 0.88430
set bmargin at screen 0.18182
set xrange [0:8.4]
set xtics nomirror scale 0.5 ("0" 0, "2" 2, "4" 4, "6" 6, "8" 8)
set xlabel "devices / devices of the baseline"
set yrange [0:8.4]
set ytics nomirror scale 0.5 ("0" 0, "2" 2, "4" 4, "6" 6, "8" 8)
set ylabel "speedup"
set arrow 1 from 0,0 to 8.4,8.4 nohead back linecolor rgb "#606060" dashtype 2
set label "ideal" at 8.4,8.4 right offset character -3,-0.6
set label "single" at 1,1 left offset character 0.8,0.5
$s0 << EOD
1 1 NaN NaN 1
EOD
set label "ddp" at screen 0.76917,0.61333 left offset character 1,0 point pointtype 5 linecolor rgb "#e2781c"
$s1 << EOD
2 1.825356769 NaN NaN NaN
2 1.835229675 NaN NaN 1.835229675
4 3.261315578 NaN NaN 3.261315578
EOD
$p1 << EOD
4 3.261315578 NaN NaN
8 5.159872914 4.678887132 5.751079163
EOD
set label "fsdp" at screen 0.76917,0.57469 left offset character 1,0 point pointtype 9 linecolor rgb "#41a58d"
$s2 << EOD
2 1.757092148 NaN NaN NaN
2 1.783574815 NaN NaN 1.783574815
4 3.140412284 NaN NaN 3.140412284
EOD
$p2 << EOD
4 3.140412284 NaN NaN
8 4.740052727 3.905624929 6.027899646
EOD
set label "deepspeed" at screen 0.76917,0.32074 left offset character 1,0 point pointtype 13 linecolor rgb "#65310f"
$s3 << EOD
2 0.857974999 NaN NaN NaN
2 1.06856194 NaN NaN 1.06856194
4 1.766355582 NaN NaN 1.766355582
EOD
$p3 << EOD
4 1.766355582 NaN NaN
8 1.661168575 NaN NaN
EOD
set label "deepspeed\137stage\1373" at screen 0.76917,0.20865 left offset character 1,0 point pointtype 11 linecolor rgb "#9c58c8"
$s4 << EOD
2 0.3205851027 NaN NaN NaN
2 0.3208766986 NaN NaN 0.3208766986
EOD
set datafile missing "NaN"
plot $s0 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#011948", \
     $s0 using 1:2:3:4 with yerrorbars linecolor rgb "#011948" pointtype 7 pointsize 0.4, \
     $s0 using 1:2 with points linecolor rgb "#011948" pointtype 7 pointsize 0.8, \
     $s1 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#e2781c", \
     $s1 using 1:2:3:4 with yerrorbars linecolor rgb "#e2781c" pointtype 5 pointsize 0.4, \
     $s1 using 1:2 with points linecolor rgb "#e2781c" pointtype 5 pointsize 0.8, \
     $s2 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#41a58d", \
     $s2 using 1:2:3:4 with yerrorbars linecolor rgb "#41a58d" pointtype 9 pointsize 0.4, \
     $s2 using 1:2 with points linecolor rgb "#41a58d" pointtype 9 pointsize 0.8, \
     $s3 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#65310f", \
     $s3 using 1:2:3:4 with yerrorbars linecolor rgb "#65310f" pointtype 13 pointsize 0.4, \
     $s3 using 1:2 with points linecolor rgb "#65310f" pointtype 13 pointsize 0.8, \
     $s4 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#9c58c8", \
     $s4 using 1:2:3:4 with yerrorbars linecolor rgb "#9c58c8" pointtype 11 pointsize 0.4, \
     $s4 using 1:2 with points linecolor rgb "#9c58c8" pointtype 11 pointsize 0.8, \
     $p1 using 1:2 with lines dashtype 3 linecolor rgb "#e2781c", \
     $p1 using 1:2:3:4 every ::1 with yerrorbars linecolor rgb "#e2781c" pointtype 4 pointsize 0.8, \
     $p1 using 1:2 every ::1 with points linecolor rgb "#e2781c" pointtype 4 pointsize 0.8, \
     $p2 using 1:2 with lines dashtype 3 linecolor rgb "#41a58d", \
     $p2 using 1:2:3:4 every ::1 with yerrorbars linecolor rgb "#41a58d" pointtype 8 pointsize 0.8, \
     $p2 using 1:2 every ::1 with points linecolor rgb "#41a58d" pointtype 8 pointsize 0.8, \
     $p3 using 1:2 with lines dashtype 3 linecolor rgb "#65310f", \
     $p3 using 1:2:3:4 every ::1 with yerrorbars linecolor rgb "#65310f" pointtype 12 pointsize 0.8, \
     $p3 using 1:2 every ::1 with points linecolor rgb "#65310f" pointtype 12 pointsize 0.8
