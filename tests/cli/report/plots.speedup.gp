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
set label "ddp" at screen 0.86472,0.78157 left offset character 1,0 point pointtype 5 linecolor rgb "#D55E00"
$s1 << EOD
2 1.9004693982037502 1.865398929652781 1.9506346476705412 1.9004693982037502
4 3.5985340617723534 3.501024699448962 3.6712412095765172 3.5985340617723534
16 11.093201876885264 10.833549726853493 11.306932673018135 11.093201876885264
EOD
set label "fsdp" at screen 0.86472,0.64863 left offset character 1,0 point pointtype 9 linecolor rgb "#009E73"
$s2 << EOD
2 1.7727970648360574 1.7233311494091497 1.8263990312956357 1.7727970648360574
4 2.9900552569372296 2.911905597011086 3.0901279053861512 2.9900552569372296
16 6.722538167292915 6.550160071212289 6.888125528919849 6.722538167292915
EOD
set label "deepspeed" at screen 0.86472,0.60815 left offset character 1,0 point pointtype 13 linecolor rgb "#CC79A7"
$s3 << EOD
2 1.703024170207657 1.6422513876097709 1.7581408276770616 1.703024170207657
4 2.8254832077740075 2.7649816867430337 2.888332865354959 2.8254832077740075
16 6.1141454103231165 5.977748009691559 6.307637905326515 6.1141454103231165
EOD
set datafile missing "NaN"
plot $s0 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#0072B2", \
     $s0 using 1:2:3:4 with yerrorbars linecolor rgb "#0072B2" pointtype 7 pointsize 0.4, \
     $s0 using 1:2 with points linecolor rgb "#0072B2" pointtype 7 pointsize 0.8, \
     $s1 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#D55E00", \
     $s1 using 1:2:3:4 with yerrorbars linecolor rgb "#D55E00" pointtype 5 pointsize 0.4, \
     $s1 using 1:2 with points linecolor rgb "#D55E00" pointtype 5 pointsize 0.8, \
     $s2 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#009E73", \
     $s2 using 1:2:3:4 with yerrorbars linecolor rgb "#009E73" pointtype 9 pointsize 0.4, \
     $s2 using 1:2 with points linecolor rgb "#009E73" pointtype 9 pointsize 0.8, \
     $s3 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#CC79A7", \
     $s3 using 1:2:3:4 with yerrorbars linecolor rgb "#CC79A7" pointtype 13 pointsize 0.4, \
     $s3 using 1:2 with points linecolor rgb "#CC79A7" pointtype 13 pointsize 0.8
