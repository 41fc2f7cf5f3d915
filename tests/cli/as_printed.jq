# Printed beside computed: for each figure in a set's "as_printed" one line
#   cell  figure  printed  computed  same|differs
# Input: the set; $report: a list with what `hpcgrid report SET --format json` says of it. Printed figures are texts, so that their digits are known.

# "3m6.619s" or "1.835" as {value, decimals}.
def printed:
  (capture("^(?<m>[0-9]+)m(?<s>[0-9.]+)s$") // {m: null, s: .}) as $p
  | {value: (($p.m // "0" | tonumber) * 60 + ($p.s | tonumber)), decimals: ($p.s | if contains(".") then split(".")[1] | length else 0 end),
     duration: ($p.m != null)};

def power($n): reduce range($n) as $i (1; . * 10);

# Half away from zero: what a hand does.
def digits($d): (. * power($d) + 1e-7 | round) as $n | ($n % power($d) | tostring) as $rest
  | "\($n / power($d) | floor)" + if $d > 0 then "." + "0" * ($d - ($rest | length)) + $rest else "" end;

def as_text($p): if $p.duration then (. / 60 | floor) as $m | "\($m)m\(. - 60 * $m | digits($p.decimals))s" else digits($p.decimals) end;

def mean: add / length;
def deviation: mean as $m | (map((. - $m) * (. - $m)) | add / (length - 1) | sqrt);
def has_all($cell): . as $c | all($cell | to_entries[]; $c[.key] == .value);
def member($name): getpath($name | split(".")) | if type == "array" then mean else . end;

# The place of a cell in the report; what all cells have in common is not told there.
def place($cell): [$report[0].tables[] | .where as $w | .points[] | (.row + .column + $w) as $k
  | select(all($cell | to_entries[]; .key as $key | $k[$key] == .value or ($k | has($key) | not)))] | if length == 1 then .[0] else error("not one place: \($cell)") end;

def computed($row; $figure): .results | map(select(.cell | has_all($row.cell))) as $found
  | if $row.rank then $found[0].ranks[] | select(.rank == $row.rank)[$figure]
    elif $figure == "speedup" or $figure == "efficiency" then place($row.cell)[$figure]
    elif $figure == "efficiency_percent" then place($row.cell).efficiency * 100
    elif $figure == "sd" then if $found[0].sd then $found[0].sd else [$found[].train_s] | deviation end
    elif $figure | endswith("_min") then [$found[] | member($figure[:-4] + "_s")] | mean / 60
    else [$found[] | member($figure)] | mean end;

. as $set | .as_printed[] | . as $row | del(.cell, .rank) | to_entries[] | .key as $figure | (.value | printed) as $p
  | ($set | computed($row; $figure)) as $c
  | [($row.cell | tojson), $figure, .value, ($c | as_text($p)),
     (if ($c - $p.value | fabs) <= 0.5 / power($p.decimals) * (1 + 1e-9) + 1e-9 then "same" else "differs" end)] | @tsv
