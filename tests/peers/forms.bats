#!/usr/bin/env bats
# The other forms in the programs that they are for: pdflatex, pandas, R.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    data="$HPCGRID_SOURCE/tests/data/results"
    labs="$HPCGRID_SOURCE/reports/reference"
    cd "$BATS_TEST_TMPDIR"
}

compile() { # PACKAGE... <body: the text of doc.pdf in the file "text"
    { echo '\documentclass{article}\usepackage[T1]{fontenc}'; printf '\\usepackage{%s}\n' "$@"
      echo '\begin{document}'; cat; echo '\end{document}'; } >doc.tex
    pdflatex -interaction=nonstopmode -halt-on-error doc.tex >log </dev/null || { grep -A5 '^!' log; return 1; }
    if grep -E 'Undefined|Missing|Package siunitx Error' log; then return 1; fi
    pdftotext -layout doc.pdf text
}

bad_names() {
    jq -n '{schema: "hpcgrid-results/1", name: "a_b & 100% $x^2$ #1 ~ {y} \\end{table} \"q\"", baseline: {nodes: 1}, results: [
        ("\\input{/etc/passwd}", "$\\infty_0^1$", "50%_&#~^\\{}", "=1+1", "-a", "{3}", "<>|\"", "a\u0007b\nc", "\u00e9\u00df\u00e6") as $s | (1, 2) as $n
        | {cell: {nodes: $n, "key_%$&": 1, strategy: $s}, train_s: (12.5 / $n)}]}'
}

@test "every table compiles with pdflatex, figures as they are printed" {
    for set in "$data"/*.json "$labs"/*.json; do
        "$hpcgrid" report "$set" --format latex >table.tex || [ $? -eq 1 ]
        compile booktabs siunitx <table.tex
    done
    "$hpcgrid" report "$data/quickstart.json" --format latex --numbers comma,durations >table.tex || [ $? -eq 1 ]
    compile booktabs siunitx <table.tex
    grep -qE '0m12,43s' text
    grep -qE '1,86' text
    "$hpcgrid" report "$data/quickstart.json" --template "$HPCGRID_SOURCE/templates/reports/paper.tex" >table.tex || [ $? -eq 1 ]
    compile booktabs <table.tex
    grep -qE '12\.43' text
}

@test "no table is wider than a column of a two-column article" {
    for set in "$data"/*.json "$labs"/*.json; do
        "$hpcgrid" report "$set" --format latex --label tab:x >table.tex || [ $? -eq 1 ]
        { printf '\\documentclass[twocolumn]{article}\\usepackage[T1]{fontenc}\\usepackage{booktabs,siunitx}\n\\begin{document}\n'
          sed 's/^\\caption.*/\\caption{x}/' table.tex; echo '\end{document}'; } >doc.tex
        pdflatex -interaction=nonstopmode -halt-on-error doc.tex >log </dev/null
        if grep -A3 '^Overfull .hbox' log; then echo "$set"; return 1; fi
    done
}

@test "names full of LaTeX stay names" {
    bad_names >set.json
    "$hpcgrid" report set.json --rows strategy --columns nodes --format latex >table.tex
    compile booktabs siunitx <table.tex
    if grep -q 'root:' text; then return 1; fi
    grep -qF '50%_&#' text
    grep -qF '\input{/etc/passwd}' text
    "$hpcgrid" report set.json --rows nodes --columns strategy --format latex >table.tex
    sed -i 's/\\centering/\\centering\\tiny/' table.tex
    compile booktabs siunitx <table.tex
}

@test "json is what its schema says" {
    i=0
    for set in "$data"/*.json "$labs"/*.json; do
        for options in "" "--strict --cost" "--metric train_s --rows nodes"; do
            i=$((i + 1))
            "$hpcgrid" report "$set" --format json $options >$i.json || [ $? -eq 1 ] || rm $i.json # 3: it has no train_s
        done
    done
    "$HPCGRID_PEERS/bin/python" - "$HPCGRID_SOURCE/reports/report.schema.json" <<'PY'
import glob, json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
reports = [json.load(open(f)) for f in glob.glob("[0-9]*.json")]
assert len(reports) > 20, len(reports)
for report in reports:
    jsonschema.Draft202012Validator(schema).validate(report)
PY
}

@test "the schema of matrices takes every right one, and finds what is wrong in others" {
    HPCGRID_SITES="$HPCGRID_SOURCE/tests/data/sites" "$hpcgrid" schema >matrix.schema.json
    "$hpcgrid" schema site >site.schema.json
    "$HPCGRID_PEERS/bin/python" - "$HPCGRID_SOURCE" <<'PY'
import glob, json, sys, jsonschema
blind = {  # what a schema cannot see, and why
    "not JSON, or as JSON like a right one": "bad-utf8 big-integer bigger-integer byte-order-mark comment deep duplicate-member empty-file"
        " integer-not-exact syntax trailing-comma truncated",
    "names that other members give": "axis-without-site baseline-unknown-key everywhere exclude-unknown-key no-default-hardware overlapping-axes report-where-key",
    "what an expression says": "derive-nul derive-typo derive-unknown-model derive-wrong-hardware derive-wrong-value jq-array-rule jq-endless"
        " jq-endless-derive jq-endless-until jq-error jq-function jq-infinite jq-no-value jq-not-boolean jq-now jq-paths jq-syntax jq-two-broken"
        " jq-two-values jq-unclosed jq-unknown-member report-where selector-in-exclude",
    "numbers beside each other, and the cells that come of them": "all-excluded all-impossible far-too-many-cells gpu-hours repeats-max-below-min too-many-cells",
    "files of this machine": "axis-account axis-hardware axis-unknown-site site-path unknown-site",
}
root = sys.argv[1]
def violations(path, schema):
    try:
        return list(jsonschema.Draft202012Validator(schema).iter_errors(json.load(open(path))))
    except (ValueError, RecursionError):
        return []
here = json.load(open("matrix.schema.json"))
shipped = json.load(open(root + "/matrices/matrix.schema.json"))
jsonschema.Draft202012Validator.check_schema(here)
bad = {path.split("/")[-2]: violations(path, here) for path in glob.glob(f"{root}/tests/cli/bad/*/matrix.json")}
assert {name for name in bad if not bad[name]} == set(" ".join(blind.values()).split()), [name for name in bad if not bad[name]]
good = [path for part in ("matrices/[!m]*", "matrices/mnist-rnn*", "matrices/reference/*", "tests/cli/good/*") for path in glob.glob(f"{root}/{part}.json")]
assert len(good) > 100, len(good)
for path in good:
    for schema in here, shipped:
        for e in violations(path, schema):
            sys.exit(f"{path}: {list(e.absolute_path)}: {e.message}")
def where(matrix):
    return ["/".join(map(str, e.absolute_path)) for e in jsonschema.Draft202012Validator(shipped).iter_errors(matrix)]
own, other = {"program": "hpcgrid-worker"}, {"command": ["train"]}
for workload, members, at in [
    (own, {"axes": {"model": "rnn", "case": [{"epochs": [1, {"range": [2, 4]}]}], "_note": {"geometric": [1, 8, 2]}}}, []),
    (own, {"axes": {"case": [{"nodes": 1}, {"lr": [0.1, {"lr": "x"}]}]}}, ["axes/case/1/lr"]),
    (own, {"axes": {"modle": ["rnn"]}}, ["axes/modle/0"]),
    (own | {"modle": "rnn"}, {}, ["workload"]),
    (own, {"axes": {"epochs": {"range": [0, 4]}}}, ["axes/epochs/range/0"]),
    (own, {"axes": {"eval": {"range": [0, 4]}}}, ["axes/eval"]),
    (own, {"derive": {"tme": "1"}}, ["derive"]),
    (own, {"exclude": [{"stratgy": "dp"}]}, ["exclude/0"]),
    (own, {"report": {"rows": ["node"]}}, ["report/rows/0"]),
    (other | {"model": "mine", "deep": {"a": [1]}}, {"axes": {"precision": ["fp8"], "epochs": ["many", [1]], "lr": {"range": [-1, 1]}}}, []),
    (other, {"axes": {"hardware": ["a100", {"hardware": "a10"}]}}, ["axes/hardware"]),
    (other | {"hardware": "a10", "env": {"hardware": "a10"}}, {}, ["workload/hardware"]),
    (other, {"site": "mine", "axes": {"hardware": "a10"}}, []),
    (other, {"site": {"extends": "cesga-ft3", "account": "me"}, "axes": {"hardware": "a10"}}, ["axes/hardware"]),
    (other, {"site": {"extends": "cesga-ft3", "hardware": {"a10": {}}}, "axes": {"hardware": "a10"}}, []),
    (other, {"baseline": {"hardware": ["t5"]}}, ["baseline/hardware"]),
]:
    found = where({"hpcgrid": 1, "name": "x", "site": "cesga-ft3", "workload": workload} | members)
    assert found == at, (workload, members, found)
sites = json.load(open("site.schema.json"))
for path in glob.glob(root + "/templates/sites/*.json") + glob.glob(root + "/tests/data/sites/*.json"):
    assert not violations(path, sites), path
for wrong in {}, {"hardware": {}}, {"hardware": {"a": {"gpus": 1}}}, {"hardware": {"a": {"device_mem": "40"}}}, {"hardware": {"a": {}}, "extra": ["--qos=x"]}:
    assert not jsonschema.Draft202012Validator(sites).is_valid(wrong), wrong
PY
}

@test "csv is read by pandas and R without options" {
    python="$HPCGRID_PEERS/bin/python"
    for set in "$data"/*.json "$labs"/*.json; do
        "$hpcgrid" report "$set" --format csv >tidy.csv || [ $? -eq 1 ]
        "$hpcgrid" report "$set" --format json >report.json || [ $? -eq 1 ]
        jq '.results | length' "$set" >rows
        "$python" - <<'PY'
import json, pandas
t, report = pandas.read_csv("tidy.csv"), json.load(open("report.json"))
assert len(t) == int(open("rows").read()), (len(t), open("rows").read())
assert t.counts.dtype == bool and t.counts.sum() >= report["cells_complete"], t.counts.sum()
metric = report["metric"]
assert t[metric].dtype.kind in "fi", t[metric].dtype
assert not t.columns.duplicated().any()
PY
        Rscript -e 't <- read.csv("tidy.csv")
                    stopifnot(nrow(t) == scan("rows", quiet = TRUE), is.numeric(t[[commandArgs(TRUE)[1]]]))' "$(jq -r .metric report.json)"
    done
    "$hpcgrid" report "$data/plots.json" --format csv --numbers comma >comma.csv
    "$hpcgrid" report "$data/plots.json" --format csv >point.csv
    Rscript -e 'stopifnot(all.equal(read.csv2("comma.csv"), read.csv("point.csv")))'
    jq -n '{schema: "hpcgrid-results/1", name: "x", results: [("1.9", "1.10") as $a | {id: "c", cell: {torch: "2.10"}, attempt: $a, train_s: 1}]}' >set.json
    "$hpcgrid" report set.json --format csv >tidy.csv
    "$python" -c 'import pandas; t = pandas.read_csv("tidy.csv"); assert [a.lstrip(chr(39)) for a in t.attempt] == ["1.9", "1.10"] and t.torch[0].endswith("2.10")'
    Rscript -e 't <- read.csv("tidy.csv"); stopifnot(is.character(t$attempt), sub("^.", "", t$attempt) == c("1.9", "1.10"))'
    bad_names >set.json
    "$hpcgrid" report set.json --format csv >tidy.csv
    "$python" -c 'import pandas; t = pandas.read_csv("tidy.csv"); assert len(t) == 18 and t.strategy.nunique() == 9; assert not t.strategy.str.match("[=+@-]").any()'
}

@test "pandas reads an export as it reads the csv, with fewer guesses" {
    for set in "$data"/*.json "$labs"/*.json; do
        "$hpcgrid" report "$set" --format csv >tidy.csv || [ $? -eq 1 ]
        "$hpcgrid" export "$set" --out sweep.db
        "$HPCGRID_PEERS/bin/python" - <<'PY'
import pandas, sqlite3
t, x = pandas.read_csv("tidy.csv"), pandas.read_sql("SELECT * FROM results", sqlite3.connect("sweep.db"))
assert list(t.columns) == list(x.columns) and len(t) == len(x), (t.columns, x.columns)
for name in t.columns:
    if t[name].dtype.kind in "fib" and t[name].notna().any():
        pandas.testing.assert_series_equal(t[name].astype(float), x[name].astype(float))
PY
    done
}
