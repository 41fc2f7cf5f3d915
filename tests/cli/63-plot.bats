#!/usr/bin/env bats
# hpcgrid report --plot: pictures by gnuplot. Golden are the scripts, which hold the data; what gnuplot makes of them is its own.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    golden="$HPCGRID_SOURCE/tests/cli/report"
    data="$HPCGRID_SOURCE/tests/data/results"
    labs="$HPCGRID_SOURCE/reports/reference"
    cd "$BATS_TEST_TMPDIR"
}

@test "scripts are as written down" {
    "$hpcgrid" report "$data/plots.json" --plot all --format gp --out scripts
    "$hpcgrid" report "$labs/lab-strategies.json" --plot speedup --format gp --numbers comma --out scripts/lab.gp || [ $? -eq 1 ]
    [ "$(ls scripts)" = "$(printf '%s\n' cost efficiency lab loss memory runs speedup time | sed 's/$/.gp/')" ]
    for script in scripts/*.gp; do
        name=plots.$(basename "$script")
        [ -z "${HPCGRID_BLESS:-}" ] || cp "$script" "$golden/$name"
        diff -u "$golden/$name" "$script"
    done
}

@test "every format is what its name says, and the same every time" {
    "$hpcgrid" report "$data/plots.json" --plot speedup,time --format svg,png,pdf,gp --out a
    LC_ALL=de_DE.UTF-8 TZ=Asia/Tokyo "$hpcgrid" report "$data/plots.json" --plot time,speedup --format gp,pdf,png,svg --out b
    [ "$(ls a | wc -l)" -eq 8 ]
    diff -r -x '*.pdf' a b
    for name in speedup time; do
        # cairo 1.18 writes the date where it cannot be taken out
        if grep -aq /CreationDate a/$name.pdf; then cmp a/$name.pdf b/$name.pdf; fi
        [ "$(head -c 8 a/$name.png | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ]
        [ "$(head -c 5 a/$name.pdf)" = %PDF- ]
        grep -q '<svg' a/$name.svg
        if grep -aE 'CreationDate \(D:[^)]*[1-9]' a/$name.pdf; then return 1; fi
    done
    (cd b && gnuplot -d speedup.gp)
    diff <(sed 's/<title>.*//' a/speedup.svg) <(sed 's/<title>.*//' b/speedup.svg)
}

@test "curves and bars are the figures of the results" {
    "$hpcgrid" report "$data/plots.json" --plot speedup,time,memory,cost --format gp --out out
    "$hpcgrid" report "$data/plots.json" --format json >report.json
    jq -r '.tables[0].points[] | select(.column.strategy == "ddp")
        | [.devices_ratio, .speedup] + .speedup_interval | map(. * 1e7 | round) | @tsv' report.json >wanted
    awk '/set label "ddp"/ { on = 1 } on && /^[0-9]/ { printf "%.0f\t%.0f\t%.0f\t%.0f\n", $1 * 1e7, $2 * 1e7, $3 * 1e7, $4 * 1e7 } on && /^EOD/ { exit }' \
        out/speedup.gp >found
    diff wanted found
    # the first bar is single on 1x1: start-up from 0 to the geometric mean of init_s
    init=$(jq '[.results[] | select(.cell.strategy == "single") | .init_s | log] | add / length | exp' "$data/plots.json")
    [ "$(awk '/^\$s0/ { getline; printf "%.8f", $2; exit }' out/time.gp)" = "$(printf %.8f "$init")" ]
    cost=$(jq '[.results[] | select(.cell.strategy == "single") | .wall_s | log] | add / length | exp / 3600' "$data/plots.json")
    [ "$(awk '/^\$s0/ { getline; printf "%.8f", $2; exit }' out/cost.gp)" = "$(printf %.8f "$cost")" ]
    grep -q 'GiB' out/memory.gp
}

@test "one picture goes to standard output or a file, several into a folder" {
    "$hpcgrid" report "$data/plots.json" --plot loss | grep -q '</svg>'
    "$hpcgrid" report "$data/plots.json" --plot loss --out loss.png
    [ "$(head -c 4 loss.png | tail -c 3)" = PNG ]
    while IFS='|' read -r code options wanted; do
        run --separate-stderr "$hpcgrid" report "$data/plots.json" $options
        echo "$options: $status: $stderr"
        [ "$status" -eq "$code" ]
        [ -z "$output" ]
        [[ "$stderr" == *"$wanted"* ]]
    done <<'EOT'
2|--plot spedup|did you mean "speedup"?
2|--plot ,|no kind given
2|--plot speedup,loss|2 pictures do not fit into one file
2|--plot speedup,loss --out x.svg|2 pictures do not fit into one file
2|--plot loss --format svg,gif --out x|known: svg, png, pdf, gp
2|--plot loss --format png --out x.svg|--out x.svg is not a png file
2|--plot loss --pivot|--plot cannot be combined with --ranks, --profile or --pivot
EOT
    run --separate-stderr "$hpcgrid" report "$labs/lab-strategies.json" --plot loss
    [ "$status" -eq 3 ]
    [[ "$stderr" == *"no picture of loss: it needs results with a loss curve"* ]]
    "$hpcgrid" report "$labs/lab-strategies.json" --plot all --out some || [ $? -eq 1 ]
    [ "$(ls some)" = "$(printf '%s\n' cost.svg efficiency.svg speedup.svg)" ]
    [ ! -e x ] && [ ! -e x.svg ]
}

@test "a table each has a picture each" {
    jq '.results += [.results[] | .cell.epochs = 4]' "$data/plots.json" >two.json
    "$hpcgrid" report two.json --plot speedup --format gp --out out
    [ "$(ls out)" = "$(printf '%s\n' speedup-1.gp speedup-2.gp)" ]
    grep -q 'epochs=4' out/speedup-2.gp
}

@test "without gnuplot the package is named" {
    mkdir bin
    ln -s "$(command -v env)" bin/env
    run --separate-stderr env PATH="$PWD/bin" "$hpcgrid" report "$data/plots.json" --plot speedup --out x.svg
    [ "$status" -eq 4 ]
    [[ "$stderr" == *"gnuplot is not installed"*"gnuplot-nox"* ]]
    [ ! -e x.svg ]
    PATH="$PWD/bin" "$hpcgrid" report "$data/plots.json" --plot speedup --out x.gp
    [ -s x.gp ]
}

@test "names are never code, neither gnuplot's nor a shell's nor markup" {
    jq -n '{schema: "hpcgrid-results/1", name: "`touch pwned1`\"; system(\"touch pwned2\") #", baseline: {nodes: 1},
        results: [("`touch pwned3`", "\"; system(\"touch pwned4\"); \"", "%s%n%5000000d", "</text><script>alert(1)</script>", "@x $s0 {/Symbol a}_b^c",
                   "EOD\nset output \"pwned5\"\nEOD", "\\\"; !touch pwned6", "'\''. system('\''touch pwned7'\'') .'\''", "\u202eabc\u0007", "\u05d0\u05d1&amp;") as $s
            | (1, 2, 4) as $n | {cell: {nodes: $n, strategy: $s}, train_s: (10 / $n), wall_s: 11, init_s: 1,
               memory: {"`touch pwned8`": 100, "\"; system(\"touch pwned9\")": 200}, loss: {epoch: [2, 1]}}]}' >set.json
    "$hpcgrid" report set.json --columns strategy --rows nodes --plot all --format svg,png,gp --out out
    (cd out && for script in *.gp; do gnuplot -d "$script"; done)
    if find . -name 'pwned*' | grep .; then return 1; fi
    if grep -qi '<script' out/*.svg; then return 1; fi
    if grep -qE '`|system\("' out/*.gp; then return 1; fi
    for file in out/*.svg; do
        [ "$(grep -o '<text' "$file" | wc -l)" -eq "$(grep -o '</text>' "$file" | wc -l)" ]
        if grep -qP '[\x00-\x08\x0e-\x1f]' "$file"; then return 1; fi
    done
    grep -q 'touch pwned3' out/speedup.svg # as text
}

@test "numbers at the ends of what there is make a picture or none, and always end" {
    while IFS='|' read -r losses times; do
        printf '{"schema": "hpcgrid-results/1", "name": "x", "baseline": {"nodes": 1}, "results": [
            {"cell": {"nodes": 1}, "train_s": %s, "wall_s": %s, "init_s": 1, "loss": {"epoch": [%s]}, "memory": {"a": 1e308, "b": 1e308}},
            {"cell": {"nodes": 2}, "train_s": 3, "loss": {"epoch": [%s]}}]}' "$times" "$times" "$losses" "$losses" >set.json
        timeout 60 "$hpcgrid" report set.json --plot all --format gp --out out
        timeout 60 "$hpcgrid" report set.json --format html --out page.html
        [ "$(stat -c %s page.html)" -lt 100000 ]
        if sed -n '/<svg/,/<\/svg>/p' page.html | grep -E '[" ,MVHL](nan|inf|-nan|-inf)'; then return 1; fi
    done <<'EOT'
1e300, 1.000000000000001e300|1e-300
-1e308, 1e308|1e300
0, 0|5
5, 5|5
1e-320, 2e-320|1e-320
EOT
}
