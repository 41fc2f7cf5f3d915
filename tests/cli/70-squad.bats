#!/usr/bin/env bats
# hpcgrid-worker tokenize, features, eval-squad. The complete development sets are held against what is known of them where the
# environment has HPCGRID_DATA (see worker/samples/squad/README.md).

bats_require_minimum_version 1.5.0

setup() {
    worker="$HPCGRID_BUILD/worker/hpcgrid-worker"
    vocab="$HPCGRID_SOURCE/worker/samples/vocab/bert-base-uncased-vocab.txt"
    slices="$HPCGRID_SOURCE/worker/samples/squad"
    cd "$BATS_TEST_TMPDIR"
}

member() { # FILE MEMBER...: numbers of a JSON object, blank between
    python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); print(*(o[k] for k in sys.argv[2:]))' "$@"
}

need_data() {
    [ -n "${HPCGRID_DATA:-}" ] && [ -e "$HPCGRID_DATA/squad/dev-v1.1.json.gz" ] ||
        skip "HPCGRID_DATA has no squad/dev-v1.1.json.gz"
}

@test "tokenize prints a list of ids for every JSON string" {
    cat >expected <<'END'
[7592, 2088, 999]
[]
[14477, 20961, 3468, 102, 1998, 1031, 19802, 2050, 1033]
[1746, 1861, 100]
END
    printf '%s\n' '"Hello wörld!"' '""' '"unaffable[SEP] and [sepa]"' '"\u4e2d文 \ud83d\ude00"' >in
    "$worker" tokenize --vocab "$vocab" <in >out
    diff expected out
}

@test "tokenize --offsets counts code points of the text" {
    echo '"\ud83d\ude00 Caf\u00e9s"' | "$worker" tokenize --offsets --vocab "$vocab" >out
    echo '{"ids": [100, 23812], "offsets": [[0, 1], [2, 7]]}' | diff - out
}

@test "tokenize names the line that is wrong" {
    printf '"a"\n[1]\n' >in
    run --separate-stderr -3 "$worker" tokenize --vocab "$vocab" <in
    [ "$output" = "[1037]" ]
    [ "$stderr" = "hpcgrid-worker: standard input:2:1: error: expected a JSON string" ]
    printf '"a\n' >in
    run --separate-stderr -3 "$worker" tokenize --vocab "$vocab" <in
    [[ "$stderr" == "hpcgrid-worker: standard input:1:1: error: not a JSON string: "* ]]
}

@test "words that are missing or unknown are usage errors or say what is known" {
    run --separate-stderr -2 "$worker" tokenize
    [[ "$stderr" == *"tokenize: --vocab is missing"* ]]
    run --separate-stderr -2 "$worker" features --data x
    [[ "$stderr" == *"features: --data and --vocab are needed"* ]]
    run --separate-stderr -2 "$worker" eval-squad --data x y
    [[ "$stderr" == *"eval-squad: too many arguments"* ]]
    run --separate-stderr -3 "$worker" features --data x --vocab y --windows overlapp
    [[ "$stderr" == *'unknown windows "overlapp"'*'did you mean "overlap"?'* ]]
    run --separate-stderr -3 "$worker" features --data x --vocab "$vocab"
    [ "$stderr" = "hpcgrid-worker: error: cannot read x: No such file or directory" ]
    for command in tokenize features eval-squad; do
        "$worker" $command --help >help
        [ "$(wc -l <help)" -le 24 ]
        [ "$(wc -L <help)" -le 100 ]
    done
}

@test "features prints counts and lengths" {
    cat >expected <<'END'
windows overlap, at most 384 tokens, stride 128, labels true

tokens of             count    mean  median     p90     p95     p99   max
features                125   249.8   223.0   384.0   384.0   384.0   384
  text in them          125   233.9   210.0   368.0   372.0   372.8   373
questions                89    11.0    10.0    17.0    24.2    27.1    28

with an answer      96 of 125 features
at most 128 tokens  6.4%, 192: 48.0%, 256: 52.8%
padded to 384       65.0% real tokens; attention 49.6%
padded to longest   65.9% in batches of 8, 16: 65.1%, 32: 65.0%
END
    "$worker" features --data "$slices/dev-v1.1-slice.json" --vocab "$vocab" >out
    diff expected out
}

@test "features reads gzip, a pipe and its cache alike" {
    gzip -c "$slices/dev-v2.0-slice.json" >v2.json.gz
    "$worker" features --data "$slices/dev-v2.0-slice.json" --vocab "$vocab" --json >plain
    "$worker" features --data v2.json.gz --vocab "$vocab" --json >packed
    "$worker" features --data - --vocab "$vocab" --json <v2.json.gz >piped
    "$worker" features --data <(cat v2.json.gz) --vocab <(cat "$vocab") --json >substituted
    "$worker" features --data v2.json.gz --vocab "$vocab" --json --cache cache >first
    "$worker" features --data v2.json.gz --vocab "$vocab" --json --cache cache >second
    diff plain packed && diff plain piped && diff plain substituted && diff plain first
    [ "$(diff first second | grep -c cached)" = 2 ]
}

@test "features --dump prints every sequence" {
    "$worker" features --data "$slices/train-v1.1-slice.json" --vocab "$vocab" --dump --questions 3 >out
    [ "$(wc -l <out)" = 3 ]
    head -c 120 out >begin
    printf '{"question": 0, "context": 17, "start": 130, "end": 137, "ids": [101, 2000, 3183, 2106, 1996, 6261, 2984, 9382, 3711, 19' >expected
    diff expected begin
}

@test "bad data is refused with its place, or skipped when asked" {
    cat >bad.json <<'END'
{"data": [{"paragraphs": [{"context": "The cat sat.", "qas": [
  {"id": "1", "question": "Who?", "answers": [{"text": "cat", "answer_start": 3}]},
  {"id": "2", "question": "Who?", "answers": [{"text": "cat", "answer_start": 4}]}]}]}]}
END
    run --separate-stderr -3 "$worker" features --data bad.json --vocab "$vocab"
    [ "$stderr" = 'hpcgrid-worker: bad.json:2:79: error: /data/0/paragraphs/0/qas/0/answers/0/answer_start: the text has " ca" at 3, not "cat"' ]
    run --separate-stderr -0 "$worker" features --data bad.json --vocab "$vocab" --skip-bad-answers --json
    [[ "$output" == *'"features": 1,'* ]]
    [ "$stderr" = "hpcgrid-worker: warning: bad.json: 1 answers are not at their offset: left out, with 1 questions" ]
    head -c 100 bad.json >cut.json
    run --separate-stderr -3 "$worker" features --data cut.json --vocab "$vocab"
    [[ "$stderr" == "hpcgrid-worker: cut.json:"*"error: the file ends in the middle of a value"* ]]
    gzip -c "$slices/dev-v2.0-slice.json" | head -c 1000 >cut.gz
    run --separate-stderr -3 "$worker" features --data cut.gz --vocab "$vocab"
    [ "$stderr" = "hpcgrid-worker: cut.gz: error: the gzip data ends too early; is the file cut off?" ]
}

@test "output that cannot be written is an error" {
    run --separate-stderr -4 bash -c "'$worker' features --data '$slices/dev-v1.1-slice.json' --vocab '$vocab' --dump >/dev/full"
    [[ "$stderr" == *"cannot write the output"* ]]
}

@test "eval-squad needs no more than the official scripts and warns of gaps" {
    echo '{"data": [{"paragraphs": [{"qas": [{"id": "1", "answers": [{"text": "the cat"}, {"text": "a dog"}]}, {"id": "2", "answers": [{"text": "x"}]}]}]}]}' >data.json
    echo '{"1": "Cats and dog.", "9": "x"}' >predictions.json
    run --separate-stderr -0 "$worker" eval-squad --data data.json --predictions predictions.json
    cat >expected <<'END'
rules 1.1    questions        EM        F1
all                  2    0.0000   25.0000
END
    diff expected <(echo "$output")
    [[ "$stderr" == *"1 of 2 questions have no prediction: they count 0"*"1 predictions have ids that are not in the data"* ]]
}

@test "eval-squad finds the best threshold of no answer" {
    # a and b have answers, c and d have none; b is answered wrongly, c although it has none
    jq -nc '{version: "v2.0", data: [{paragraphs: [{context: "the cat sat", qas:
        [{id: "a", answers: [{text: "cat", answer_start: 4}]}, {id: "b", answers: [{text: "sat", answer_start: 8}]}, {id: "c", answers: []}, {id: "d", answers: []}]
        | map(. + {question: "what?", is_impossible: (.answers == [])})}]}]}' >data.json
    echo '{"a": "cat", "b": "the cat", "c": "sat", "d": ""}' >p.json
    echo '{"a": 0.1, "b": 0.4, "c": 0.7, "d": 0.9}' >na.json
    eval_squad() { run --separate-stderr "$worker" eval-squad --data data.json --predictions p.json "$@"; }
    eval_squad --na-prob na.json
    cat >expected <<'END'
rules 2.0    questions        EM        F1
all                  4   50.0000   50.0000
has answer           2   50.0000   50.0000
no answer            2   50.0000   50.0000
best EM        75.0000  with threshold 0.1
best F1        75.0000  with threshold 0.1
END
    diff expected <(echo "$output")
    [ "$stderr" = "" ]
    eval_squad --na-prob na.json --na-prob-threshold 0.5 --json
    [ "$(jq -c '[.em, .no_answer.em, .best_em, .best_em_threshold, .best_f1, .best_f1_threshold]' <<<"$output")" = '[75,100,75,0.1,75,0.1]' ]
    # of equal numbers each is tried by itself, in the order of the file: d's comes last whatever its number
    echo '{"c": 0, "a": 0, "b": 0, "d": 0, "x": 1}' >na.json
    eval_squad --na-prob na.json --json
    [ "$(jq -c '[.best_em, .best_em_threshold]' <<<"$output")" = '[50,0]' ]
    [[ "$stderr" == *"1 numbers of --na-prob have ids that are not in the data: ignored"* ]]
    echo '{"a": 0.1, "b": 0.4, "c": "x"}' >na.json
    eval_squad --na-prob na.json
    [ "$status" -eq 3 ]
    [[ "$stderr" == *"na.json:1:"*"/c: expected a number, found a string"* ]]
    echo '{"a": 0.1, "b": 0.4, "c": 0.7}' >na.json
    eval_squad --na-prob na.json
    [ "$status" -eq 3 ]
    [[ "$stderr" == *"question d has a prediction, but no probability of having no answer"* ]]
    eval_squad --na-prob-threshold 0.5
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"--na-prob-threshold needs --na-prob"* ]]
    jq -c '.version = "1.1" | .data[].paragraphs[].qas |= (.[:2] | map(del(.is_impossible)))' data.json >old.json
    run --separate-stderr "$worker" eval-squad --data old.json --predictions p.json --na-prob na.json
    [ "$status" -eq 3 ]
    [[ "$stderr" == *"--na-prob is for v2.0: in old.json every question has an answer"* ]]
}

@test "the development sets have the known numbers of features and lengths" {
    need_data
    dev="$HPCGRID_DATA/squad/dev-v1.1.json.gz"
    "$worker" features --data "$dev" --vocab "$vocab" --json >overlap
    "$worker" features --data "$dev" --vocab "$vocab" --json --windows advance >advance
    [ "$(member overlap features questions)" = "10784 10570" ]
    [ "$(member advance features)" = 10833 ]
    "$worker" features --data "$dev" --vocab "$vocab" >out
    grep -qx "features              10784   176.0   164.0   264.0   304.0   384.0   384" out
    grep -qx "at most 128 tokens  20.9%, 192: 68.1%, 256: 88.5%" out
    grep -qx "padded to 384       45.8% real tokens; attention 23.9%" out
    "$worker" features --data "$HPCGRID_DATA/squad/dev-v2.0-without-plausible.json.gz" --vocab "$vocab" --json >v2
    [ "$(member v2 features questions)" = "12134 11873" ]
}

@test "published predictions get their published scores" {
    need_data
    while read -r name em f1; do
        "$worker" eval-squad --data "$HPCGRID_DATA/squad/dev-v1.1.json.gz" \
            --predictions "$HPCGRID_DATA/squad/predictions-dev-v1.1/$name.json.gz" 2>/dev/null | tail -1 >out
        echo "all              10570   $em   $f1" | diff - out
    done <<'END'
bert-ensemble 86.2062 92.1956
r-net-plus-ensemble 82.4693 88.4779
slqa-plus-ensemble 81.9489 88.3839
match-lstm-ensemble 67.6348 76.7556
logistic-regression-baseline 40.1419 50.9815
END
}
