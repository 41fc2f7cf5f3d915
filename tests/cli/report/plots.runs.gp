# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,380 font "sans-serif,14" background "#ffffff"
set output "runs.svg"
set label "plots: runs" at screen 0.01667,0.94737 left
set label "dots: single runs; mark: their geometric mean and its 95 \045 interval" at screen 0.01667,0.03684 left textcolor rgb "#505050"
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.19317
set rmargin at screen 0.96467
set tmargin at screen 0.85263
set bmargin at screen 0.22105
set xrange [0:426.8456392]
set xtics nomirror scale 0.5 ("0" 0, "100" 100, "200" 200, "300" 300, "400" 400)
set xlabel "train\137s, seconds"
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
$s0 << EOD
397.9895319 0 388.0370244 408.1973048
208.6401185 1 203.7957701 213.5996199
224.3310795 2 216.5982981 232.3399291
234.2205524 3 224.7105802 244.1329959
111.0114057 4 108.0942653 114.007271
132.676735 5 127.9897531 137.5353542
140.8321789 6 139.3771795 142.3023675
35.95951748 7 35.23061774 36.70349771
59.25092927 8 57.5443439 61.00812663
64.81409633 9 62.77592339 66.91844351
EOD
$d0 << EOD
397.181 0
394.414 0
402.415 0
206.526 1
210.422 1
208.991 1
224.042 2
227.658 2
221.338 2
230.934 3
238.572 3
233.221 3
110.373 4
112.393 4
110.281 4
130.697 5
132.834 5
134.527 5
140.571 6
140.42 6
141.508 6
36.303 7
35.774 7
35.804 7
59.082 8
58.657 8
60.022 8
65.569 9
63.923 9
64.961 9
EOD
set datafile missing "NaN"
plot $s0 using 1:2:3:4 with xerrorbars linecolor rgb "#011948" pointtype 0, \
     $s0 using 1:($2-0.32):(0):(0.64) with vectors nohead linewidth 2 linecolor rgb "#011948", \
     $d0 using 1:2 with points linecolor rgb "#e2781c" pointtype 6 pointsize 0.5
