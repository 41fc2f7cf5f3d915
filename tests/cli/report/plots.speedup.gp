# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,462 font "sans-serif,14" background "#ffffff"
set output "speedup.svg"
set label "plots: speedup" at screen 0.01667,0.95671 left
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.09322
set rmargin at screen 0.79633
set tmargin at screen 0.87879
set bmargin at screen 0.14286
set xrange [0.925304428:17.29333559]
set logscale x 2
set xtics nomirror scale 0.5 ("1" 1, "2" 2, "4" 4, "8" 8, "16" 16)
set xlabel "devices / devices of the baseline"
set yrange [0.9395525895:16.0016]
set logscale y 2
set ytics nomirror scale 0.5 ("1" 1, "2" 2, "4" 4, "8" 8, "16" 16)
set ylabel "speedup"
set arrow 1 from 0.9395525895,0.9395525895 to 16,16 nohead back linecolor rgb "#606060" dashtype 2
set label "ideal" at 16,16 right offset character -3,-0.6
set arrow from screen 0.81022,0.15904 to screen 0.85744,0.15904 nohead dashtype 1 linewidth 1.5 linecolor rgb "#011948"
set label "single" at screen 0.83383,0.15904 left offset character 3,-0.12 point pointtype 7 pointsize 0.8 linecolor rgb "#011948"
$s0 << EOD
1 1 NaN NaN 1
EOD
$d0 << EOD
1 1.002035676
1 1.009065429
1 0.9890027258
EOD
set arrow from screen 0.81022,0.78311 to screen 0.85744,0.78311 nohead dashtype 2 linewidth 1.5 linecolor rgb "#e2781c"
set label "ddp" at screen 0.83383,0.78311 left offset character 3,-0.12 point pointtype 5 pointsize 0.8 linecolor rgb "#e2781c"
$s1 << EOD
2 1.907540769 1.86539893 1.950634648 1.907540769
4 3.585122892 3.501024699 3.67124121 3.585122892
16 11.06771057 10.83354973 11.30693267 11.06771057
EOD
$d1 << EOD
2 1.927067449
2 1.891387459
2 1.904338139
4 3.605859512
4 3.541052663
4 3.608867637
16 10.96299292
16 11.12510572
16 11.11578404
EOD
set arrow from screen 0.81022,0.65348 to screen 0.85744,0.65348 nohead dashtype 3 linewidth 1.5 linecolor rgb "#41a58d"
set label "fsdp" at screen 0.83383,0.65348 left offset character 3,-0.12 point pointtype 9 pointsize 0.8 linecolor rgb "#41a58d"
$s2 << EOD
2 1.774116778 1.723331149 1.826399031 1.774116778
4 2.999693442 2.911905597 3.090127905 2.999693442
16 6.717017553 6.550160071 6.888125529 6.717017553
EOD
$d2 << EOD
2 1.776405906
2 1.748190408
2 1.798107564
4 3.045131349
4 2.996142041
4 2.95843609
16 6.736223078
16 6.785030464
16 6.630727599
EOD
set arrow from screen 0.81022,0.61300 to screen 0.85744,0.61300 nohead dashtype 4 linewidth 1.5 linecolor rgb "#65310f"
set label "deepspeed" at screen 0.83383,0.61300 left offset character 3,-0.12 point pointtype 13 pointsize 0.8 linecolor rgb "#65310f"
$s3 << EOD
2 1.699208408 1.642251388 1.758140828 1.699208408
4 2.825984338 2.764981687 2.888332865 2.825984338
16 6.140477989 5.97774801 6.307637905 6.140477989
EOD
$d3 << EOD
2 1.723390804
2 1.668215599
2 1.706490976
4 2.831234977
4 2.834279532
4 2.812487859
16 6.069781938
16 6.226077185
16 6.126591831
EOD
set datafile missing "NaN"
plot $s0 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#011948", \
     $s0 using 1:2:3:4 with yerrorbars linecolor rgb "#011948" pointtype 7 pointsize 0.4, \
     $s0 using 1:2 with points linecolor rgb "#011948" pointtype 7 pointsize 0.8, \
     $d0 using 1:2 with points linecolor rgb "#ffffff" pointtype 7 pointsize 0.42, \
     $d0 using 1:2 with points linecolor rgb "#011948" pointtype 7 pointsize 0.28, \
     $s1 using ($1*0.948663):(valid(5) ? $5 : 1/0) with lines dashtype 2 linewidth 1.5 linecolor rgb "#e2781c", \
     $s1 using ($1*0.948663):2:3:4 with yerrorbars linecolor rgb "#e2781c" pointtype 5 pointsize 0.4, \
     $s1 using ($1*0.948663):2 with points linecolor rgb "#e2781c" pointtype 5 pointsize 0.8, \
     $d1 using ($1*0.948663):2 with points linecolor rgb "#ffffff" pointtype 7 pointsize 0.42, \
     $d1 using ($1*0.948663):2 with points linecolor rgb "#e2781c" pointtype 7 pointsize 0.28, \
     $s2 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 3 linewidth 1.5 linecolor rgb "#41a58d", \
     $s2 using 1:2:3:4 with yerrorbars linecolor rgb "#41a58d" pointtype 9 pointsize 0.4, \
     $s2 using 1:2 with points linecolor rgb "#41a58d" pointtype 9 pointsize 0.8, \
     $d2 using 1:2 with points linecolor rgb "#ffffff" pointtype 7 pointsize 0.42, \
     $d2 using 1:2 with points linecolor rgb "#41a58d" pointtype 7 pointsize 0.28, \
     $s3 using ($1*1.054115):(valid(5) ? $5 : 1/0) with lines dashtype 4 linewidth 1.5 linecolor rgb "#65310f", \
     $s3 using ($1*1.054115):2:3:4 with yerrorbars linecolor rgb "#65310f" pointtype 13 pointsize 0.4, \
     $s3 using ($1*1.054115):2 with points linecolor rgb "#65310f" pointtype 13 pointsize 0.8, \
     $d3 using ($1*1.054115):2 with points linecolor rgb "#ffffff" pointtype 7 pointsize 0.42, \
     $d3 using ($1*1.054115):2 with points linecolor rgb "#65310f" pointtype 7 pointsize 0.28
