# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,462 font "sans-serif,14" background "#ffffff"
set output "efficiency.svg"
set label "plots: efficiency" at screen 0.01667,0.95671 left
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.09983
set rmargin at screen 0.79633
set tmargin at screen 0.87879
set bmargin at screen 0.14286
set xrange [0.925304428:17.29333559]
set logscale x 2
set xtics nomirror scale 0.5 ("1" 1, "2" 2, "4" 4, "8" 8, "16" 16)
set xlabel "devices / devices of the baseline"
set yrange [0:1.0595187]
set ytics nomirror scale 0.5 ("0.0" 0, "0.2" 0.2, "0.4" 0.4, "0.6" 0.6, "0.8" 0.8, "1.0" 1)
set ylabel "efficiency"
set arrow 1 from 0.925304428,1 to 17.29160643,1 nohead back linecolor rgb "#606060" dashtype 2
set label "ideal" at 17.29160643,1 right offset character -0.5,0.6
set arrow from screen 0.81022,0.83745 to screen 0.85744,0.83745 nohead dashtype 1 linewidth 1.5 linecolor rgb "#011948"
set label "single" at screen 0.83383,0.83745 left offset character 3,-0.12 point pointtype 7 pointsize 0.8 linecolor rgb "#011948"
$s0 << EOD
1 1 NaN NaN 1
EOD
$d0 << EOD
1 1.002035676
1 1.009065429
1 0.9890027258
EOD
set arrow from screen 0.81022,0.62333 to screen 0.85744,0.62333 nohead dashtype 2 linewidth 1.5 linecolor rgb "#e2781c"
set label "ddp" at screen 0.83383,0.62333 left offset character 3,-0.12 point pointtype 5 pointsize 0.8 linecolor rgb "#e2781c"
$s1 << EOD
2 0.9537703843 0.9326994648 0.9753173238 0.9537703843
4 0.8962807231 0.8752561749 0.9178103024 0.8962807231
16 0.6917319109 0.6770968579 0.7066832921 0.6917319109
EOD
$d1 << EOD
2 0.9635337244
2 0.9456937295
2 0.9521690693
4 0.901464878
4 0.8852631657
4 0.9022169093
16 0.6851870574
16 0.6953191073
16 0.6947365028
EOD
set arrow from screen 0.81022,0.43446 to screen 0.85744,0.43446 nohead dashtype 3 linewidth 1.5 linecolor rgb "#41a58d"
set label "fsdp" at screen 0.83383,0.43446 left offset character 3,-0.12 point pointtype 9 pointsize 0.8 linecolor rgb "#41a58d"
$s2 << EOD
2 0.887058389 0.8616655747 0.9131995156 0.887058389
4 0.7499233604 0.7279763993 0.7725319763 0.7499233604
16 0.4198135971 0.4093850045 0.4305078456 0.4198135971
EOD
$d2 << EOD
2 0.8882029528
2 0.874095204
2 0.8990537818
4 0.7612828372
4 0.7490355103
4 0.7396090226
16 0.4210139424
16 0.424064404
16 0.4144204749
EOD
set arrow from screen 0.81022,0.39398 to screen 0.85744,0.39398 nohead dashtype 4 linewidth 1.5 linecolor rgb "#65310f"
set label "deepspeed" at screen 0.83383,0.39398 left offset character 3,-0.12 point pointtype 13 pointsize 0.8 linecolor rgb "#65310f"
$s3 << EOD
2 0.849604204 0.8211256938 0.8790704138 0.849604204
4 0.7064960845 0.6912454217 0.7220832163 0.7064960845
16 0.3837798743 0.3736092506 0.3942273691 0.3837798743
EOD
$d3 << EOD
2 0.861695402
2 0.8341077996
2 0.853245488
4 0.7078087442
4 0.7085698831
4 0.7031219647
16 0.3793613711
16 0.3891298241
16 0.3829119894
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
