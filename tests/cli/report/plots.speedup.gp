# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,462 font "sans-serif,14" background "#ffffff"
set output "speedup.svg"
set label "plots: speedup" at screen 0.01667,0.95671 left
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.10556
set rmargin at screen 0.83694
set tmargin at screen 0.87879
set bmargin at screen 0.14286
set xrange [1:16.0016]
set logscale x 2
set xtics nomirror scale 0.5 ("1" 1, "2" 2, "4" 4, "8" 8, "16" 16)
set xlabel "devices / devices of the baseline"
set yrange [1:16.0016]
set logscale y 2
set ytics nomirror scale 0.5 ("1" 1, "2" 2, "4" 4, "8" 8, "16" 16)
set ylabel "speedup"
set arrow 1 from 1,1 to 16,16 nohead back linecolor rgb "#606060" dashtype 2
set label "ideal" at 16,16 right offset character -3,-0.6
set label "single" at 1,1 left offset character 0.8,0.5
$s0 << EOD
1 1 NaN NaN 1
EOD
set label "ddp" at screen 0.86472,0.78096 left offset character 1,0 point pointtype 5 linecolor rgb "#e2781c"
$s1 << EOD
2 1.907540769 1.86539893 1.950634648 1.907540769
4 3.585122892 3.501024699 3.67124121 3.585122892
16 11.06771057 10.83354973 11.30693267 11.06771057
EOD
set label "fsdp" at screen 0.86472,0.64841 left offset character 1,0 point pointtype 9 linecolor rgb "#41a58d"
$s2 << EOD
2 1.774116778 1.723331149 1.826399031 1.774116778
4 2.999693442 2.911905597 3.090127905 2.999693442
16 6.717017553 6.550160071 6.888125529 6.717017553
EOD
set label "deepspeed" at screen 0.86472,0.60793 left offset character 1,0 point pointtype 13 linecolor rgb "#65310f"
$s3 << EOD
2 1.699208408 1.642251388 1.758140828 1.699208408
4 2.825984338 2.764981687 2.888332865 2.825984338
16 6.140477989 5.97774801 6.307637905 6.140477989
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
     $s3 using 1:2 with points linecolor rgb "#65310f" pointtype 13 pointsize 0.8
