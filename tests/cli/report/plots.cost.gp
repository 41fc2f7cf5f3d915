# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,480 font "sans-serif,14" background "#ffffff"
set output "cost.svg"
set label "plots: cost" at screen 0.01667,0.95833 left
set label "some labels are left out for lack of space" at screen 0.01667,0.02917 left textcolor rgb "#505050"
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.09983
set rmargin at screen 0.79633
set tmargin at screen 0.88333
set bmargin at screen 0.17500
set xrange [0:429.8286945]
set xtics nomirror scale 0.5 ("0" 0, "100" 100, "200" 200, "300" 300, "400" 400)
set xlabel "train\137s, seconds"
set yrange [0:0.4071117104]
set ytics nomirror scale 0.5 ("0.0" 0, "0.1" 0.1, "0.2" 0.2, "0.3" 0.3, "0.4" 0.4)
set ylabel "device-hours"
set label "single" at screen 0.83383,0.88333 left offset character 3,-0.12 point pointtype 7 pointsize 0.8 linecolor rgb "#011948"
set label "1×1" at 397.9895319,0.1140249865 right offset character -0.8,0.5
$s0 << EOD
397.9895319 0.1140249865 NaN NaN 0.1140249865
EOD
set label "ddp" at screen 0.83383,0.84437 left offset character 3,-0.12 point pointtype 5 pointsize 0.8 linecolor rgb "#e2781c"
set label "1×2" at 208.6401185,0.123133602 left offset character 0.8,0.5
set label "2×2" at 111.0114057,0.1389020902 left offset character 0.8,0.5
set label "4×4" at 35.95951748,0.2487102599 left offset character 0.8,0.5
$s1 << EOD
208.6401185 0.123133602 NaN NaN 0.123133602
111.0114057 0.1389020902 NaN NaN 0.1389020902
35.95951748 0.2487102599 NaN NaN 0.2487102599
EOD
set label "fsdp" at screen 0.83383,0.80542 left offset character 3,-0.12 point pointtype 9 pointsize 0.8 linecolor rgb "#41a58d"
set label "2×2" at 132.676735,0.1629751337 left offset character 0.8,0.5
set label "4×4" at 59.25092927,0.3522294164 left offset character 0.8,0.5
$s2 << EOD
224.3310795 0.1318510532 NaN NaN 0.1318510532
132.676735 0.1629751337 NaN NaN 0.1629751337
59.25092927 0.3522294164 NaN NaN 0.3522294164
EOD
set label "deepspeed" at screen 0.83383,0.76646 left offset character 3,-0.12 point pointtype 13 pointsize 0.8 linecolor rgb "#65310f"
set label "4×4" at 64.81409633,0.3769552874 left offset character 0.8,0.5
$s3 << EOD
234.2205524 0.1373453852 NaN NaN 0.1373453852
140.8321789 0.1720358367 NaN NaN 0.1720358367
64.81409633 0.3769552874 NaN NaN 0.3769552874
EOD
set datafile missing "NaN"
plot $s0 using 1:2:3:4 with yerrorbars linecolor rgb "#011948" pointtype 7 pointsize 0.4, \
     $s0 using 1:2 with points linecolor rgb "#011948" pointtype 7 pointsize 0.8, \
     $s1 using 1:2:3:4 with yerrorbars linecolor rgb "#e2781c" pointtype 5 pointsize 0.4, \
     $s1 using 1:2 with points linecolor rgb "#e2781c" pointtype 5 pointsize 0.8, \
     $s2 using 1:2:3:4 with yerrorbars linecolor rgb "#41a58d" pointtype 9 pointsize 0.4, \
     $s2 using 1:2 with points linecolor rgb "#41a58d" pointtype 9 pointsize 0.8, \
     $s3 using 1:2:3:4 with yerrorbars linecolor rgb "#65310f" pointtype 13 pointsize 0.4, \
     $s3 using 1:2 with points linecolor rgb "#65310f" pointtype 13 pointsize 0.8
