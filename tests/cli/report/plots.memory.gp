# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,416 font "sans-serif,14" background "#ffffff"
set output "memory.svg"
set label "plots: memory" at screen 0.01667,0.95192 left
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.19317
set rmargin at screen 0.97711
set tmargin at screen 0.73558
set bmargin at screen 0.15865
set xrange [0:3.71998996]
set xtics nomirror scale 0.5 ("0" 0, "1" 1, "2" 2, "3" 3)
set xlabel "peak of each class on the fullest rank, GiB"
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
set label "parameters" at screen 0.03333,0.88942 left offset character 1,0 point pointtype 5 linecolor rgb "#011948"
$s0 << EOD
0 0.4056587294 0
0 0.4056587294 1
0 0.2028293647 2
0 0.4056587294 3
0 0.4056587294 4
0 0.1014146823 5
0 0.4056587294 6
0 0.4056587294 7
0 0.02535367012 8
0 0.4056587294 9
EOD
set label "gradients" at screen 0.50000,0.88942 left offset character 1,0 point pointtype 5 linecolor rgb "#e2781c"
$s1 << EOD
0.4056587294 0.8113174587 0
0.4056587294 0.8113174587 1
0.2028293647 0.4056587294 2
0.4056587294 0.6084880941 3
0.4056587294 0.8113174587 4
0.1014146823 0.2028293647 5
0.4056587294 0.5070734117 6
0.4056587294 0.8113174587 7
0.02535367012 0.05070734024 8
0.4056587294 0.4310123995 9
EOD
set label "optimizer" at screen 0.03333,0.84615 left offset character 1,0 point pointtype 5 linecolor rgb "#41a58d"
$s2 << EOD
0.8113174587 1.622634917 0
0.8113174587 1.622634917 1
0.4056587294 0.8113174587 2
0.6084880941 1.014146823 3
0.8113174587 1.622634917 4
0.2028293647 0.4056587294 5
0.5070734117 0.7099027764 6
0.8113174587 1.622634917 7
0.05070734024 0.1014146814 8
0.4310123995 0.4817197407 9
EOD
set label "activations" at screen 0.50000,0.84615 left offset character 1,0 point pointtype 5 linecolor rgb "#65310f"
$s3 << EOD
1.622634917 3.622634917 0
1.622634917 3.622634917 1
0.8113174587 2.811317459 2
1.014146823 3.014146823 3
1.622634917 3.622634917 4
0.4056587294 2.405658729 5
0.7099027764 2.709902776 6
1.622634917 3.622634917 7
0.1014146814 2.101414681 8
0.4817197407 2.481719741 9
EOD
set label "comm" at screen 0.03333,0.80288 left offset character 1,0 point pointtype 5 linecolor rgb "#9c58c8"
$s4 << EOD
3.622634917 3.64704898 0
3.622634917 3.64704898 1
2.811317459 2.835731521 2
3.014146823 3.038560886 3
3.622634917 3.64704898 4
2.405658729 2.430072792 5
2.709902776 2.734316839 6
3.622634917 3.64704898 7
2.101414681 2.125828744 8
2.481719741 2.506133803 9
EOD
set style fill solid 1 border rgb "#ffffff"
plot $s0 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#011948", \
     $s1 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#e2781c", \
     $s2 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#41a58d", \
     $s3 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#65310f", \
     $s4 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#9c58c8"
