#!/usr/bin/env bats
# hpcgrid report --template: files of the users' own.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    golden="$HPCGRID_SOURCE/tests/cli/report"
    data="$HPCGRID_SOURCE/tests/data/results"
    samples="$HPCGRID_SOURCE/templates/reports"
    cd "$BATS_TEST_TMPDIR"
    formats=$(sed -n 's/.* FORMAT .*one of //p' "$HPCGRID_SOURCE/tests/cli/help/report.txt") # golden, too
    [ -n "$formats" ]
}

@test "the sample templates make what is written down, the same every time" {
    for sample in summary.html paper.tex; do
        "$hpcgrid" report "$data/quickstart.json" --template "$samples/$sample" --out out || [ $? -eq 1 ]
        LC_ALL=de_DE.UTF-8 TZ=Asia/Tokyo "$hpcgrid" report - --template "$samples/$sample" <"$data/quickstart.json" >again || [ $? -eq 1 ]
        cmp out again
        [ -z "${HPCGRID_BLESS:-}" ] || cp out "$golden/template.$sample"
        diff -u "$golden/template.$sample" out
    done
}

@test "an empty template makes an empty file" {
    : >t.txt
    "$hpcgrid" report "$data/plots.json" --template t.txt --out out
    [ -e out ] && [ ! -s out ]
    [ -z "$("$hpcgrid" report "$data/plots.json" --template t.txt)" ]
}

@test "values are written for the format that is made" {
    jq -n '{schema: "hpcgrid-results/1", name: "x", results: [{cell: {nodes: 1, strategy: "=a\"<b>_%\u202e|"}, train_s: 90.5}]}' >set.json
    printf '{{#results}}{{cell.strategy}}{{/results}}' >t
    while IFS=' ' read -r format wanted; do
        "$hpcgrid" report set.json --template t --format $format >out
        [ "$(cat out)" = "$wanted" ] || { cat out; false; }
        cp t t.$format
    done <<'EOT'
html =a&#34;&#60;b&#62;_%?|
latex =a\textquotedbl{}\textless{}b\textgreater{}\_\%?\textbar{}
text =a"<b>_%?|
EOT
    "$hpcgrid" report set.json --template t --format csv | grep -qF "\"'=a\"\"<b>_%"
    "$hpcgrid" report set.json --template t --format json | grep -qF '=a\"<b>_%'
    "$hpcgrid" report set.json --template t --format md | grep -qF '=a"&lt;b>_%?\|'
    printf '{{#results}}{{value}} {{exact}}{{/results}}' >t.txt
    [ "$("$hpcgrid" report set.json --template t.txt --numbers durations,comma)" = "1m30,5s 90.5" ]
}

@test "what is wrong in a template is said with line and column" {
    while IFS='|' read -r code text options wanted; do
        printf "$text" >t.txt
        run --separate-stderr "$hpcgrid" report "$data/quickstart.json" --template t.txt $options
        echo "$text: $status: $stderr"
        [ "$status" -eq "$code" ]
        [ -z "$output" ]
        [[ "$stderr" == *"$wanted"* ]]
    done <<EOT
3|a\n{{titel}}||t.txt:2:1: error: there is no "titel" here
3|{{titel}}||did you mean "title"?
3|{{#tables}}{{>x}}||t.txt:1:12: error: {{>x}}: a template is one file
3|{{#results}}{{cell.strateg}}{{/results}}||t.txt:1:13: error: there is no "cell.strateg" here
2|{{title}}|--format yaml|known: ${formats// /, }
2|{{title}}|--plot all|--plot cannot be combined with --template
2|{{title}}|--ranks|--template cannot be combined with --ranks
EOT
    printf x >t
    run --separate-stderr "$hpcgrid" report "$data/quickstart.json" --template t
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"the ending of t does not say its format"*"are written: $formats"* ]]
    run --separate-stderr "$hpcgrid" report "$data/quickstart.json" --template none.txt
    [ "$status" -eq 3 ]
    diff -u - <(printf '%s\n' "$stderr") <<END
hpcgrid: error: --template: cannot read none.txt: No such file or directory
  searched only in $(pwd -P): --template takes a path
END
    run --separate-stderr "$hpcgrid" report "$data/quickstart.json" --template none # its ending is no matter yet
    [[ "$stderr" == *"cannot read none: No such file"* ]]
    head -c 1100000 /dev/zero | tr '\0' x >big.txt
    run --separate-stderr "$hpcgrid" report "$data/quickstart.json" --template big.txt
    [ "$status" -eq 3 ]
}
