# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,480 font "sans-serif,14" background "#ffffff"
set output "loss.svg"
set label "plots: loss" at screen 0.01667,0.95833 left
set label "the first run of each place" at screen 0.01667,0.02917 left textcolor rgb "#505050"
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.09983
set rmargin at screen 0.74850
set tmargin at screen 0.88333
set bmargin at screen 0.17500
set xrange [0:481]
set xtics nomirror scale 0.5 ("0" 0, "100" 100, "200" 200, "300" 300, "400" 400)
set xlabel "step"
set yrange [0:2.39844]
set ytics nomirror scale 0.5 ("0.0" 0, "0.5" 0.5, "1.0" 1, "1.5" 1.5, "2.0" 2)
set ylabel "loss"
set arrow from screen 0.76239,0.29187 to screen 0.80961,0.29187 nohead dashtype 1 linewidth 1.5 linecolor rgb "#011948"
set label "single 1×1" at screen 0.78600,0.29187 left offset character 3,-0.12 point pointtype 7 pointsize 0.8 linecolor rgb "#011948"
$s0 << EOD
1 2.3081 NaN NaN 2.3081 2.3081
33 1.7918 NaN NaN 1.7918 NaN
65 1.5193 NaN NaN 1.5193 1.5193
97 1.2595 NaN NaN 1.2595 NaN
129 1.0267 NaN NaN 1.0267 1.0267
161 0.9095 NaN NaN 0.9095 NaN
193 0.7644 NaN NaN 0.7644 0.7644
225 0.6919 NaN NaN 0.6919 NaN
257 0.645 NaN NaN 0.645 0.645
289 0.6461 NaN NaN 0.6461 NaN
321 0.5694 NaN NaN 0.5694 0.5694
353 0.6243 NaN NaN 0.6243 NaN
385 0.5189 NaN NaN 0.5189 0.5189
417 0.52 NaN NaN 0.52 NaN
449 0.5013 NaN NaN 0.5013 0.5013
481 0.5634 NaN NaN 0.5634 NaN
EOD
set arrow from screen 0.76239,0.25292 to screen 0.80961,0.25292 nohead dashtype 2 linewidth 1.5 linecolor rgb "#e2781c"
set label "ddp 1×2" at screen 0.78600,0.25292 left offset character 3,-0.12 point pointtype 5 pointsize 0.8 linecolor rgb "#e2781c"
$s1 << EOD
1 2.2567 NaN NaN 2.2567 2.2567
33 1.8102 NaN NaN 1.8102 NaN
65 1.4324 NaN NaN 1.4324 1.4324
97 1.2075 NaN NaN 1.2075 NaN
129 1.0695 NaN NaN 1.0695 1.0695
161 0.9283 NaN NaN 0.9283 NaN
193 0.8069 NaN NaN 0.8069 0.8069
225 0.7628 NaN NaN 0.7628 NaN
257 0.6796 NaN NaN 0.6796 0.6796
289 0.6822 NaN NaN 0.6822 NaN
321 0.6283 NaN NaN 0.6283 0.6283
353 0.5605 NaN NaN 0.5605 NaN
385 0.5881 NaN NaN 0.5881 0.5881
417 0.568 NaN NaN 0.568 NaN
449 0.5657 NaN NaN 0.5657 0.5657
481 0.5277 NaN NaN 0.5277 NaN
EOD
set arrow from screen 0.76239,0.21396 to screen 0.80961,0.21396 nohead dashtype 3 linewidth 1.5 linecolor rgb "#41a58d"
set label "fsdp 1×2" at screen 0.78600,0.21396 left offset character 3,-0.12 point pointtype 9 pointsize 0.8 linecolor rgb "#41a58d"
$s2 << EOD
1 2.2567 NaN NaN 2.2567 2.2567
33 1.8102 NaN NaN 1.8102 NaN
65 1.4324 NaN NaN 1.4324 1.4324
97 1.2075 NaN NaN 1.2075 NaN
129 1.0695 NaN NaN 1.0695 1.0695
161 0.9283 NaN NaN 0.9283 NaN
193 0.8069 NaN NaN 0.8069 0.8069
225 0.7628 NaN NaN 0.7628 NaN
257 0.6796 NaN NaN 0.6796 0.6796
289 0.6822 NaN NaN 0.6822 NaN
321 0.6283 NaN NaN 0.6283 0.6283
353 0.5605 NaN NaN 0.5605 NaN
385 0.5881 NaN NaN 0.5881 0.5881
417 0.568 NaN NaN 0.568 NaN
449 0.5657 NaN NaN 0.5657 0.5657
481 0.5277 NaN NaN 0.5277 NaN
EOD
set arrow from screen 0.76239,0.17500 to screen 0.80961,0.17500 nohead dashtype 4 linewidth 1.5 linecolor rgb "#65310f"
set label "deepspeed 1×2" at screen 0.78600,0.17500 left offset character 3,-0.12 point pointtype 13 pointsize 0.8 linecolor rgb "#65310f"
$s3 << EOD
1 2.2567 NaN NaN 2.2567 2.2567
33 1.8102 NaN NaN 1.8102 NaN
65 1.4324 NaN NaN 1.4324 1.4324
97 1.2075 NaN NaN 1.2075 NaN
129 1.0695 NaN NaN 1.0695 1.0695
161 0.9283 NaN NaN 0.9283 NaN
193 0.8069 NaN NaN 0.8069 0.8069
225 0.7628 NaN NaN 0.7628 NaN
257 0.6796 NaN NaN 0.6796 0.6796
289 0.6822 NaN NaN 0.6822 NaN
321 0.6283 NaN NaN 0.6283 0.6283
353 0.5605 NaN NaN 0.5605 NaN
385 0.5881 NaN NaN 0.5881 0.5881
417 0.568 NaN NaN 0.568 NaN
449 0.5657 NaN NaN 0.5657 0.5657
481 0.5277 NaN NaN 0.5277 NaN
EOD
set arrow from screen 0.76239,0.40875 to screen 0.80961,0.40875 nohead dashtype 1 linewidth 1.5 linecolor rgb "#9c58c8"
set label "ddp 2×2" at screen 0.78600,0.40875 left offset character 3,-0.12 point pointtype 11 pointsize 0.8 linecolor rgb "#9c58c8"
$s4 << EOD
1 2.2998 NaN NaN 2.2998 2.2998
33 1.8311 NaN NaN 1.8311 NaN
65 1.533 NaN NaN 1.533 1.533
97 1.283 NaN NaN 1.283 NaN
129 1.1022 NaN NaN 1.1022 1.1022
161 0.9298 NaN NaN 0.9298 NaN
193 0.8891 NaN NaN 0.8891 0.8891
225 0.7417 NaN NaN 0.7417 NaN
257 0.7503 NaN NaN 0.7503 0.7503
289 0.7002 NaN NaN 0.7002 NaN
321 0.6243 NaN NaN 0.6243 0.6243
353 0.6797 NaN NaN 0.6797 NaN
385 0.638 NaN NaN 0.638 0.638
417 0.567 NaN NaN 0.567 NaN
449 0.6271 NaN NaN 0.6271 0.6271
481 0.6135 NaN NaN 0.6135 NaN
EOD
set arrow from screen 0.76239,0.36979 to screen 0.80961,0.36979 nohead dashtype 2 linewidth 1.5 linecolor rgb "#4a20e7"
set label "fsdp 2×2" at screen 0.78600,0.36979 left offset character 3,-0.12 point pointtype 1 pointsize 0.8 linecolor rgb "#4a20e7"
$s5 << EOD
1 2.2998 NaN NaN 2.2998 2.2998
33 1.8311 NaN NaN 1.8311 NaN
65 1.533 NaN NaN 1.533 1.533
97 1.283 NaN NaN 1.283 NaN
129 1.1022 NaN NaN 1.1022 1.1022
161 0.9298 NaN NaN 0.9298 NaN
193 0.8891 NaN NaN 0.8891 0.8891
225 0.7417 NaN NaN 0.7417 NaN
257 0.7503 NaN NaN 0.7503 0.7503
289 0.7002 NaN NaN 0.7002 NaN
321 0.6243 NaN NaN 0.6243 0.6243
353 0.6797 NaN NaN 0.6797 NaN
385 0.638 NaN NaN 0.638 0.638
417 0.567 NaN NaN 0.567 NaN
449 0.6271 NaN NaN 0.6271 0.6271
481 0.6135 NaN NaN 0.6135 NaN
EOD
set arrow from screen 0.76239,0.33083 to screen 0.80961,0.33083 nohead dashtype 3 linewidth 1.5 linecolor rgb "#271010"
set label "deepspeed 2×2" at screen 0.78600,0.33083 left offset character 3,-0.12 point pointtype 15 pointsize 0.8 linecolor rgb "#271010"
$s6 << EOD
1 2.2998 NaN NaN 2.2998 2.2998
33 1.8311 NaN NaN 1.8311 NaN
65 1.533 NaN NaN 1.533 1.533
97 1.283 NaN NaN 1.283 NaN
129 1.1022 NaN NaN 1.1022 1.1022
161 0.9298 NaN NaN 0.9298 NaN
193 0.8891 NaN NaN 0.8891 0.8891
225 0.7417 NaN NaN 0.7417 NaN
257 0.7503 NaN NaN 0.7503 0.7503
289 0.7002 NaN NaN 0.7002 NaN
321 0.6243 NaN NaN 0.6243 0.6243
353 0.6797 NaN NaN 0.6797 NaN
385 0.638 NaN NaN 0.638 0.638
417 0.567 NaN NaN 0.567 NaN
449 0.6271 NaN NaN 0.6271 0.6271
481 0.6135 NaN NaN 0.6135 NaN
EOD
set arrow from screen 0.76239,0.52563 to screen 0.80961,0.52563 nohead dashtype 4 linewidth 1.5 linecolor rgb "#2c5562"
set label "ddp 4×4" at screen 0.78600,0.52563 left offset character 3,-0.12 point pointtype 2 pointsize 0.8 linecolor rgb "#2c5562"
$s7 << EOD
1 2.2893 NaN NaN 2.2893 2.2893
33 1.9297 NaN NaN 1.9297 NaN
65 1.645 NaN NaN 1.645 1.645
97 1.4289 NaN NaN 1.4289 NaN
129 1.2667 NaN NaN 1.2667 1.2667
161 1.1637 NaN NaN 1.1637 NaN
193 1.0931 NaN NaN 1.0931 1.0931
225 0.9629 NaN NaN 0.9629 NaN
257 0.9719 NaN NaN 0.9719 0.9719
289 0.8882 NaN NaN 0.8882 NaN
321 0.915 NaN NaN 0.915 0.915
353 0.8699 NaN NaN 0.8699 NaN
385 0.8668 NaN NaN 0.8668 0.8668
417 0.8891 NaN NaN 0.8891 NaN
449 0.8355 NaN NaN 0.8355 0.8355
481 0.8132 NaN NaN 0.8132 NaN
EOD
set arrow from screen 0.76239,0.48667 to screen 0.80961,0.48667 nohead dashtype 2 linewidth 1.5 linecolor rgb "#011948"
set label "fsdp 4×4" at screen 0.78600,0.48667 left offset character 3,-0.12 point pointtype 7 pointsize 0.8 linecolor rgb "#011948"
$s8 << EOD
1 2.2893 NaN NaN 2.2893 NaN
33 1.9297 NaN NaN 1.9297 1.9297
65 1.645 NaN NaN 1.645 NaN
97 1.4289 NaN NaN 1.4289 1.4289
129 1.2667 NaN NaN 1.2667 NaN
161 1.1637 NaN NaN 1.1637 1.1637
193 1.0931 NaN NaN 1.0931 NaN
225 0.9629 NaN NaN 0.9629 0.9629
257 0.9719 NaN NaN 0.9719 NaN
289 0.8882 NaN NaN 0.8882 0.8882
321 0.915 NaN NaN 0.915 NaN
353 0.8699 NaN NaN 0.8699 0.8699
385 0.8668 NaN NaN 0.8668 NaN
417 0.8891 NaN NaN 0.8891 0.8891
449 0.8355 NaN NaN 0.8355 NaN
481 0.8132 NaN NaN 0.8132 0.8132
EOD
set arrow from screen 0.76239,0.44771 to screen 0.80961,0.44771 nohead dashtype 3 linewidth 1.5 linecolor rgb "#e2781c"
set label "deepspeed 4×4" at screen 0.78600,0.44771 left offset character 3,-0.12 point pointtype 5 pointsize 0.8 linecolor rgb "#e2781c"
$s9 << EOD
1 2.2893 NaN NaN 2.2893 NaN
33 1.9297 NaN NaN 1.9297 1.9297
65 1.645 NaN NaN 1.645 NaN
97 1.4289 NaN NaN 1.4289 1.4289
129 1.2667 NaN NaN 1.2667 NaN
161 1.1637 NaN NaN 1.1637 1.1637
193 1.0931 NaN NaN 1.0931 NaN
225 0.9629 NaN NaN 0.9629 0.9629
257 0.9719 NaN NaN 0.9719 NaN
289 0.8882 NaN NaN 0.8882 0.8882
321 0.915 NaN NaN 0.915 NaN
353 0.8699 NaN NaN 0.8699 0.8699
385 0.8668 NaN NaN 0.8668 NaN
417 0.8891 NaN NaN 0.8891 0.8891
449 0.8355 NaN NaN 0.8355 NaN
481 0.8132 NaN NaN 0.8132 0.8132
EOD
set datafile missing "NaN"
plot $s0 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#011948", \
     $s0 using 1:6 with points linecolor rgb "#011948" pointtype 7 pointsize 0.8, \
     $s1 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 2 linewidth 1.5 linecolor rgb "#e2781c", \
     $s1 using 1:6 with points linecolor rgb "#e2781c" pointtype 5 pointsize 0.8, \
     $s2 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 3 linewidth 1.5 linecolor rgb "#41a58d", \
     $s2 using 1:6 with points linecolor rgb "#41a58d" pointtype 9 pointsize 0.8, \
     $s3 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 4 linewidth 1.5 linecolor rgb "#65310f", \
     $s3 using 1:6 with points linecolor rgb "#65310f" pointtype 13 pointsize 0.8, \
     $s4 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#9c58c8", \
     $s4 using 1:6 with points linecolor rgb "#9c58c8" pointtype 11 pointsize 0.8, \
     $s5 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 2 linewidth 1.5 linecolor rgb "#4a20e7", \
     $s5 using 1:6 with points linecolor rgb "#4a20e7" pointtype 1 pointsize 0.8, \
     $s6 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 3 linewidth 1.5 linecolor rgb "#271010", \
     $s6 using 1:6 with points linecolor rgb "#271010" pointtype 15 pointsize 0.8, \
     $s7 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 4 linewidth 1.5 linecolor rgb "#2c5562", \
     $s7 using 1:6 with points linecolor rgb "#2c5562" pointtype 2 pointsize 0.8, \
     $s8 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 2 linewidth 1.5 linecolor rgb "#011948", \
     $s8 using 1:6 with points linecolor rgb "#011948" pointtype 7 pointsize 0.8, \
     $s9 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 3 linewidth 1.5 linecolor rgb "#e2781c", \
     $s9 using 1:6 with points linecolor rgb "#e2781c" pointtype 5 pointsize 0.8
