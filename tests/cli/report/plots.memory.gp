# Made by hpcgrid report; gnuplot 5.4 or later draws it.
set encoding utf8
set terminal svg noenhanced size 720,416 font "sans-serif,14" background "#ffffff"
set output "memory.svg"
set label "plots: memory" at screen 0.01667,0.95192 left
unset key
set border 3
set grid back linecolor rgb "#d8d8d8" linetype 1 linewidth 0.5
set lmargin at screen 0.18028
set rmargin at screen 0.96667
set tmargin at screen 0.73558
set bmargin at screen 0.15865
set xrange [0:3.7199899595975876]
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
set label "parameters" at screen 0.03333,0.88942 left offset character 1,0 point pointtype 5 linecolor rgb "#0072B2"
$s0 << EOD
0 0.4056587293744087 0
0 0.4056587293744087 1
0 0.20282936468720436 2
0 0.4056587293744087 3
0 0.4056587293744087 4
0 0.10141468234360218 5
0 0.4056587293744087 6
0 0.4056587293744087 7
0 0.025353670120239258 8
0 0.4056587293744087 9
EOD
set label "gradients" at screen 0.50000,0.88942 left offset character 1,0 point pointtype 5 linecolor rgb "#D55E00"
$s1 << EOD
0.4056587293744087 0.8113174587488174 0
0.4056587293744087 0.8113174587488174 1
0.20282936468720436 0.4056587293744087 2
0.4056587293744087 0.6084880940616131 3
0.4056587293744087 0.8113174587488174 4
0.10141468234360218 0.20282936468720436 5
0.4056587293744087 0.5070734117180109 6
0.4056587293744087 0.8113174587488174 7
0.025353670120239258 0.050707340240478516 8
0.4056587293744087 0.431012399494648 9
EOD
set label "optimizer" at screen 0.03333,0.84615 left offset character 1,0 point pointtype 5 linecolor rgb "#009E73"
$s2 << EOD
0.8113174587488174 1.6226349174976349 0
0.8113174587488174 1.6226349174976349 1
0.4056587293744087 0.8113174587488174 2
0.6084880940616131 1.0141468234360218 3
0.8113174587488174 1.6226349174976349 4
0.20282936468720436 0.4056587293744087 5
0.5070734117180109 0.7099027764052153 6
0.8113174587488174 1.6226349174976349 7
0.050707340240478516 0.1014146814122796 8
0.431012399494648 0.48171974066644907 9
EOD
set label "activations" at screen 0.50000,0.84615 left offset character 1,0 point pointtype 5 linecolor rgb "#CC79A7"
$s3 << EOD
1.6226349174976349 3.622634917497635 0
1.6226349174976349 3.622634917497635 1
0.8113174587488174 2.8113174587488174 2
1.0141468234360218 3.014146823436022 3
1.6226349174976349 3.622634917497635 4
0.4056587293744087 2.4056587293744087 5
0.7099027764052153 2.7099027764052153 6
1.6226349174976349 3.622634917497635 7
0.1014146814122796 2.1014146814122796 8
0.48171974066644907 2.481719740666449 9
EOD
set label "comm" at screen 0.03333,0.80288 left offset character 1,0 point pointtype 5 linecolor rgb "#E69F00"
$s4 << EOD
3.622634917497635 3.647048979997635 0
3.622634917497635 3.647048979997635 1
2.8113174587488174 2.8357315212488174 2
3.014146823436022 3.038560885936022 3
3.622634917497635 3.647048979997635 4
2.4056587293744087 2.4300727918744087 5
2.7099027764052153 2.7343168389052153 6
3.622634917497635 3.647048979997635 7
2.1014146814122796 2.1258287439122796 8
2.481719740666449 2.506133803166449 9
EOD
set style fill solid 1 border rgb "#ffffff"
plot $s0 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#0072B2", \
     $s1 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#D55E00", \
     $s2 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#009E73", \
     $s3 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#CC79A7", \
     $s4 using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "#E69F00"
