#!/usr/bin/env bats
# The page of a report in headless Chromium: at the width of a desk and of a phone, light and dark, printed.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    data="$HPCGRID_SOURCE/tests/data/results"
    cd "$BATS_TEST_TMPDIR"
    cp "$HPCGRID_SOURCE/tests/peers/probe.html" .
}

browser() {
    timeout 120 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir="$BATS_TEST_TMPDIR/profile" \
        --allow-file-access-from-files --disable-background-networking "$@" 2>browser.log
}

# look PAGE WIDTH [OPTION...]: what probe.html found, as JSON in the file "found"
look() {
    local page=$1 width=$2
    shift 2
    browser "$@" --dump-dom "file://$PWD/probe.html?page=$page&width=$width" >dom
    sed -n 's/.*<body>found \(.*\) end<.*/\1/p' dom | sed 's/&gt;/>/g; s/&lt;/</g; s/&amp;/\&/g' >found
    [ -s found ] || { cat dom browser.log; return 1; }
    cat found
}

good() {
    jq -e '.problems == [] and .resources == 0 and (.overflow | not) and (.pwned | not) and .contrast and .tables > 3' found
}

@test "pages can be read at 1280, 390 and 320 pixels, light and dark, and their tables sort" {
    for set in plots quickstart footnotes; do
        "$hpcgrid" report "$data/$set.json" --format html --out $set.html || [ $? -eq 1 ]
        for width in 1280 390 320; do
            for scheme in 0 1; do
                look $set.html $width --blink-settings=preferredColorScheme=$scheme
                good
            done
        done
    done
    jq -e '.pictures >= 2' found || look plots.html 1280
}

# Fifteen series of four sizes, five runs each, with names and figures that are too long.
curves() {
    jq -n '{schema: "hpcgrid-results/1", name: "curves", baseline: {nodes: 1}, results: [range(15) as $s | (1, 2, 4, 8) as $n | range(5) as $k
        | {id: "\($s)-\($n)-\($k)", cell: {nodes: $n, strategy: "WWWW_strategy_with_a_long_name_\($s)", repeat: ($k + 1)},
           train_s: (1e6 / ($n * (1 - 0.02 * $s * ($n | log))) * (1 + 0.03 * (($k * 7 + $s * 3) % 5 - 2))), wall_s: (1.2e6 / $n), init_s: 3,
           memory: {weights: 1e9, "activations of every layer and then some more of it": 3e9},
           loss: {step: [range(200) | . * 1e5], loss: [range(200) | -1234567 + 10 / (1 + . * (0.02 + $s * 0.003)) + $n]}}]}' >curves.json
}

@test "pictures of fifteen series fit, can be read on a phone, and show every run" {
    curves
    "$hpcgrid" report curves.json --format html --out curves.html
    for width in 1280 390; do
        look curves.html $width
        good
        jq -e '.pictures == 7 and .runs == 300 and .least_text > 11' found
    done
}

@test "gnuplot's pictures of them fit, too" {
    curves
    "$hpcgrid" report curves.json --plot all --format svg --out pictures
    for svg in pictures/*.svg; do
        { echo '<!DOCTYPE html><html lang="en"><body>'; sed '1,/<svg/{/<svg/!d}' "$svg"; echo '</body></html>'; } >one.html
        cat >frame.html <<'END'
<!DOCTYPE html><iframe src="one.html" style="width:1000px;height:2500px"></iframe><script>
onload = () => {
  const doc = frames[0].document, area = doc.querySelector("svg").getBoundingClientRect();
  const out = Array.from(doc.querySelectorAll("svg text"), t => [t.getBoundingClientRect(), t.textContent])
    .filter(([b]) => b.width && (b.left < area.left || b.right > area.right || b.top < area.top || b.bottom > area.bottom));
  document.body.textContent = "found " + doc.querySelectorAll("svg text").length + " texts " + out.length + " outside " + out.map(o => o[1]).join("; ") + " end";
};
</script>
END
        browser --dump-dom "file://$PWD/frame.html" >dom
        grep -o 'found .* end' dom
        grep -qE 'found [1-9][0-9]+ texts 0 outside' dom
    done
}

@test "names full of markup run nothing and break nothing" {
    jq -n '{schema: "hpcgrid-results/1", name: "<img src=x onerror=\"window.pwned=1\">", source: "</script><script>window.pwned=1</script>", baseline: {nodes: 1},
        results: [("</svg><script>top.pwned=1</script>", "\" onmouseover=\"pwned=1", "\u05d0\u05d1\u05d2 \u202e", "a&amp;<b>", "javascript:pwned=1") as $s | (1, 2, 4) as $n
        | {cell: {nodes: $n, strategy: $s}, train_s: (10 / $n), wall_s: 12, init_s: 1, memory: {"<i>": 5}, loss: {epoch: [2, 1]}}]}' >set.json
    "$hpcgrid" report set.json --rows nodes --columns strategy --format html --out page.html
    look page.html 390
    good
    jq -e '.pictures >= 4' found
}

@test "a page of a thousand cells opens at once" {
    jq -n '{schema: "hpcgrid-results/1", name: "many", baseline: {nodes: 1, gpus_per_node: 1, strategy: "single"},
        results: [("single", "ddp", "fsdp", "deepspeed", "dp") as $s | (1, 2, 4, 8, 16) as $n | (1, 2, 4, 8) as $g | range(10) as $r
        | {id: "bert-\($s)-\($n)x\($g)-\($r)", attempt: "1.0", cell: {nodes: $n, gpus_per_node: $g, strategy: $s, repeat: ($r + 1)},
           train_s: (1000 / ($n * $g) + $r), wall_s: (1000 / ($n * $g) + $r + 3), init_s: 2, comm: {all_reduce: {exposed_s: 1}}}]}' >many.json
    "$hpcgrid" report many.json --format html --out many.html
    look many.html 1280
    good
    echo "# opened in $(jq .opened_ms found) ms" >&3
    [ "$(jq .opened_ms found)" -lt 30000 ] # the figure is printed; a busy machine is no failure
}

@test "colours of series are told apart by all kinds of eyes" {
    python3 "$HPCGRID_SOURCE/tests/peers/colours.py" "$HPCGRID_SOURCE"
}

@test "a wide table is printed whole" {
    curves
    "$hpcgrid" report curves.json --format html --out curves.html
    browser --no-pdf-header-footer --print-to-pdf="$PWD/page.pdf" "file://$PWD/curves.html"
    pdftotext -bbox page.pdf words
    width=$(sed -n 's/.*<page width="\([0-9]*\).*/\1/p' words | head -1)
    [ "$(grep -cE '_?14<' words)" -ge 3 ] # the last column of three tables
    [ "$(grep -o 'xMax="[0-9]*' words | cut -d'"' -f2 | sort -n | tail -1)" -le "$width" ]
}

@test "the page prints" {
    "$hpcgrid" report "$data/plots.json" --format html --out page.html
    browser --no-pdf-header-footer --print-to-pdf="$PWD/page.pdf" "file://$PWD/page.html"
    pdftotext -layout page.pdf text
    grep -q '30 of 30 cells complete' text
    grep -q 'Where the numbers come from' text
    [ "$(pdfinfo page.pdf | sed -n 's/^Pages: *//p')" -le 8 ]
}
