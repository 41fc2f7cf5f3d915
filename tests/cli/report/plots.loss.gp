# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,484 font "sans-serif,14" background "#ffffff"
set output "loss.svg"
set label "plots: loss" at screen 0.01667,0.95868 left
set label "the first run of each place" at screen 0.01667,0.02893 left textcolor rgb "#505050"
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.10556
set rmargin at screen 0.78917
set tmargin at screen 0.88430
set bmargin at screen 0.18182
set xrange [0:481]
set xtics nomirror scale 0.5 ("0" 0, "100" 100, "200" 200, "300" 300, "400" 400)
set xlabel "step"
set yrange [0:2.39844]
set ytics nomirror scale 0.5 ("0.0" 0, "0.5" 0.5, "1.0" 1, "1.5" 1.5, "2.0" 2)
set ylabel "loss"
set label "single 1×1" at screen 0.81694,0.29773 left offset character 1,0 point pointtype 7 linecolor rgb "#011948"
$s0 << EOD
1 2.3081 NaN NaN 2.3081
33 1.7918 NaN NaN 1.7918
65 1.5193 NaN NaN 1.5193
97 1.2595 NaN NaN 1.2595
129 1.0267 NaN NaN 1.0267
161 0.9095 NaN NaN 0.9095
193 0.7644 NaN NaN 0.7644
225 0.6919 NaN NaN 0.6919
257 0.645 NaN NaN 0.645
289 0.6461 NaN NaN 0.6461
321 0.5694 NaN NaN 0.5694
353 0.6243 NaN NaN 0.6243
385 0.5189 NaN NaN 0.5189
417 0.52 NaN NaN 0.52
449 0.5013 NaN NaN 0.5013
481 0.5634 NaN NaN 0.5634
EOD
set label "ddp 1×2" at screen 0.81694,0.25909 left offset character 1,0 point pointtype 5 linecolor rgb "#e2781c"
$s1 << EOD
1 2.2567 NaN NaN 2.2567
33 1.8102 NaN NaN 1.8102
65 1.4324 NaN NaN 1.4324
97 1.2075 NaN NaN 1.2075
129 1.0695 NaN NaN 1.0695
161 0.9283 NaN NaN 0.9283
193 0.8069 NaN NaN 0.8069
225 0.7628 NaN NaN 0.7628
257 0.6796 NaN NaN 0.6796
289 0.6822 NaN NaN 0.6822
321 0.6283 NaN NaN 0.6283
353 0.5605 NaN NaN 0.5605
385 0.5881 NaN NaN 0.5881
417 0.568 NaN NaN 0.568
449 0.5657 NaN NaN 0.5657
481 0.5277 NaN NaN 0.5277
EOD
set label "fsdp 1×2" at screen 0.81694,0.22045 left offset character 1,0 point pointtype 9 linecolor rgb "#41a58d"
$s2 << EOD
1 2.2567 NaN NaN 2.2567
33 1.8102 NaN NaN 1.8102
65 1.4324 NaN NaN 1.4324
97 1.2075 NaN NaN 1.2075
129 1.0695 NaN NaN 1.0695
161 0.9283 NaN NaN 0.9283
193 0.8069 NaN NaN 0.8069
225 0.7628 NaN NaN 0.7628
257 0.6796 NaN NaN 0.6796
289 0.6822 NaN NaN 0.6822
321 0.6283 NaN NaN 0.6283
353 0.5605 NaN NaN 0.5605
385 0.5881 NaN NaN 0.5881
417 0.568 NaN NaN 0.568
449 0.5657 NaN NaN 0.5657
481 0.5277 NaN NaN 0.5277
EOD
set label "deepspeed 1×2" at screen 0.81694,0.18182 left offset character 1,0 point pointtype 13 linecolor rgb "#65310f"
$s3 << EOD
1 2.2567 NaN NaN 2.2567
33 1.8102 NaN NaN 1.8102
65 1.4324 NaN NaN 1.4324
97 1.2075 NaN NaN 1.2075
129 1.0695 NaN NaN 1.0695
161 0.9283 NaN NaN 0.9283
193 0.8069 NaN NaN 0.8069
225 0.7628 NaN NaN 0.7628
257 0.6796 NaN NaN 0.6796
289 0.6822 NaN NaN 0.6822
321 0.6283 NaN NaN 0.6283
353 0.5605 NaN NaN 0.5605
385 0.5881 NaN NaN 0.5881
417 0.568 NaN NaN 0.568
449 0.5657 NaN NaN 0.5657
481 0.5277 NaN NaN 0.5277
EOD
set label "ddp 2×2" at screen 0.81694,0.41364 left offset character 1,0 point pointtype 11 linecolor rgb "#9c58c8"
$s4 << EOD
1 2.2998 NaN NaN 2.2998
33 1.8311 NaN NaN 1.8311
65 1.533 NaN NaN 1.533
97 1.283 NaN NaN 1.283
129 1.1022 NaN NaN 1.1022
161 0.9298 NaN NaN 0.9298
193 0.8891 NaN NaN 0.8891
225 0.7417 NaN NaN 0.7417
257 0.7503 NaN NaN 0.7503
289 0.7002 NaN NaN 0.7002
321 0.6243 NaN NaN 0.6243
353 0.6797 NaN NaN 0.6797
385 0.638 NaN NaN 0.638
417 0.567 NaN NaN 0.567
449 0.6271 NaN NaN 0.6271
481 0.6135 NaN NaN 0.6135
EOD
set label "fsdp 2×2" at screen 0.81694,0.37500 left offset character 1,0 point pointtype 1 linecolor rgb "#4a20e7"
$s5 << EOD
1 2.2998 NaN NaN 2.2998
33 1.8311 NaN NaN 1.8311
65 1.533 NaN NaN 1.533
97 1.283 NaN NaN 1.283
129 1.1022 NaN NaN 1.1022
161 0.9298 NaN NaN 0.9298
193 0.8891 NaN NaN 0.8891
225 0.7417 NaN NaN 0.7417
257 0.7503 NaN NaN 0.7503
289 0.7002 NaN NaN 0.7002
321 0.6243 NaN NaN 0.6243
353 0.6797 NaN NaN 0.6797
385 0.638 NaN NaN 0.638
417 0.567 NaN NaN 0.567
449 0.6271 NaN NaN 0.6271
481 0.6135 NaN NaN 0.6135
EOD
set label "deepspeed 2×2" at screen 0.81694,0.33636 left offset character 1,0 point pointtype 15 linecolor rgb "#271010"
$s6 << EOD
1 2.2998 NaN NaN 2.2998
33 1.8311 NaN NaN 1.8311
65 1.533 NaN NaN 1.533
97 1.283 NaN NaN 1.283
129 1.1022 NaN NaN 1.1022
161 0.9298 NaN NaN 0.9298
193 0.8891 NaN NaN 0.8891
225 0.7417 NaN NaN 0.7417
257 0.7503 NaN NaN 0.7503
289 0.7002 NaN NaN 0.7002
321 0.6243 NaN NaN 0.6243
353 0.6797 NaN NaN 0.6797
385 0.638 NaN NaN 0.638
417 0.567 NaN NaN 0.567
449 0.6271 NaN NaN 0.6271
481 0.6135 NaN NaN 0.6135
EOD
set label "ddp 4×4" at screen 0.81694,0.52955 left offset character 1,0 point pointtype 2 linecolor rgb "#2c5562"
$s7 << EOD
1 2.2893 NaN NaN 2.2893
33 1.9297 NaN NaN 1.9297
65 1.645 NaN NaN 1.645
97 1.4289 NaN NaN 1.4289
129 1.2667 NaN NaN 1.2667
161 1.1637 NaN NaN 1.1637
193 1.0931 NaN NaN 1.0931
225 0.9629 NaN NaN 0.9629
257 0.9719 NaN NaN 0.9719
289 0.8882 NaN NaN 0.8882
321 0.915 NaN NaN 0.915
353 0.8699 NaN NaN 0.8699
385 0.8668 NaN NaN 0.8668
417 0.8891 NaN NaN 0.8891
449 0.8355 NaN NaN 0.8355
481 0.8132 NaN NaN 0.8132
EOD
set label "fsdp 4×4" at screen 0.81694,0.49091 left offset character 1,0 point pointtype 7 linecolor rgb "#011948"
$s8 << EOD
1 2.2893 NaN NaN 2.2893
33 1.9297 NaN NaN 1.9297
65 1.645 NaN NaN 1.645
97 1.4289 NaN NaN 1.4289
129 1.2667 NaN NaN 1.2667
161 1.1637 NaN NaN 1.1637
193 1.0931 NaN NaN 1.0931
225 0.9629 NaN NaN 0.9629
257 0.9719 NaN NaN 0.9719
289 0.8882 NaN NaN 0.8882
321 0.915 NaN NaN 0.915
353 0.8699 NaN NaN 0.8699
385 0.8668 NaN NaN 0.8668
417 0.8891 NaN NaN 0.8891
449 0.8355 NaN NaN 0.8355
481 0.8132 NaN NaN 0.8132
EOD
set label "deepspeed 4×4" at screen 0.81694,0.45227 left offset character 1,0 point pointtype 5 linecolor rgb "#e2781c"
$s9 << EOD
1 2.2893 NaN NaN 2.2893
33 1.9297 NaN NaN 1.9297
65 1.645 NaN NaN 1.645
97 1.4289 NaN NaN 1.4289
129 1.2667 NaN NaN 1.2667
161 1.1637 NaN NaN 1.1637
193 1.0931 NaN NaN 1.0931
225 0.9629 NaN NaN 0.9629
257 0.9719 NaN NaN 0.9719
289 0.8882 NaN NaN 0.8882
321 0.915 NaN NaN 0.915
353 0.8699 NaN NaN 0.8699
385 0.8668 NaN NaN 0.8668
417 0.8891 NaN NaN 0.8891
449 0.8355 NaN NaN 0.8355
481 0.8132 NaN NaN 0.8132
EOD
set datafile missing "NaN"
plot $s0 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#011948", \
     $s1 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#e2781c", \
     $s2 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#41a58d", \
     $s3 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#65310f", \
     $s4 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#9c58c8", \
     $s5 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#4a20e7", \
     $s6 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#271010", \
     $s7 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 1 linewidth 1.5 linecolor rgb "#2c5562", \
     $s8 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 2 linewidth 1.5 linecolor rgb "#011948", \
     $s9 using 1:(valid(5) ? $5 : 1/0) with lines dashtype 2 linewidth 1.5 linecolor rgb "#e2781c"
