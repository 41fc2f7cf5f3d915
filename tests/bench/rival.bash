# SPDX-License-Identifier: Apache-2.0
# For benchmarks beside PyTorch on the CPU. A mode of its script is a process that says its first loss, warms up and then, for each line that
# it reads, trains an epoch and prints figures: so all modes take turns. Uses $work, $threads, $source.

python=${HPCGRID_PEERS:-$source/.cache/peers}/bin/python
pids=()

machine() {
    echo "machine: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg); median of $runs"
}

# median COLUMN FILE; nothing of an empty file
median() { cut -d' ' -f"$1" "$2" | sort -n | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# row WHAT OURS MODE THEIRS TARGET: THEIRS is a figure, why there is none, or empty (a heading)
row() {
    awk -v what="$1" -v ours="$2" -v mode="$3" -v theirs="$4" -v target="$5" '
        function short(x) { return x + 0 == 0 ? x : x >= 100 ? sprintf("%.0f", x) : sprintf("%.3f", x) }
        BEGIN { printf "%-50s %10s  %-22s %10s %7s %s\n", what, short(ours), mode, short(theirs), (theirs + 0 > 0 ? sprintf("%.2f", ours / theirs) : ""), target }'
}

have_bf16() { grep -qwE 'avx512_bf16|amx_bf16' /proc/cpuinfo; }

# rival_start MODE LOSS SCRIPT...: until it is warm. It runs no further where its first loss is not LOSS (within 1e-5 of it, bf16: 2e-2).
rival_start() {
    local mode=$1 ours=$2 first allowed=1e-5
    shift 2
    : >"$work/$mode.rival"
    case $mode in *bf16)
        allowed=2e-2
        have_bf16 || { echo "not measured: the CPU has neither AVX512-BF16 nor AMX" >"$work/$mode.why" && return; }
        ;;
    esac
    "$python" -c 'import torch' 2>/dev/null || { echo "not measured: no PyTorch" >"$work/$mode.why" && return; }
    rm -f "$work/$mode.why"
    mkfifo "$work/$mode.in" "$work/$mode.out"
    OMP_NUM_THREADS=$threads OMP_PLACES=cores OMP_PROC_BIND=close LD_PRELOAD=$(ldconfig -p | awk '/libtcmalloc.so|libjemalloc.so/ { print $NF; exit }') \
        "$python" "$@" <"$work/$mode.in" >"$work/$mode.out" 2>"$work/$mode.err" &
    pids+=($!)
    exec {in}>"$work/$mode.in" {out}<"$work/$mode.out"
    rm "$work/$mode.in" "$work/$mode.out"
    eval "in_${mode//-/_}=$in out_${mode//-/_}=$out"
    if ! read -r first <&"$out" || ! read -r _ <&"$out"; then
        echo "not measured: $(tail -1 "$work/$mode.err")" >"$work/$mode.why"
    elif ! awk -v a="$first" -v b="$ours" -v allowed=$allowed 'BEGIN { exit !(a > 0 && (a - b) / b <= allowed && (b - a) / b <= allowed) }'; then
        echo "WRONG: first loss $first, hpcgrid's $ours" >"$work/$mode.why"
    fi
}

# rival_turn MODE: one epoch, its figures into a file
rival_turn() {
    local in=in_${1//-/_} out=out_${1//-/_} line
    [ ! -e "$work/$1.why" ] || return 0
    echo >&"${!in}"
    read -r line <&"${!out}"
    echo "$line" >>"$work/$1.rival"
}

# rival COLUMN MODE: its median, or why there is none
rival() {
    if [ -s "$work/$2.rival" ]; then
        median "$1" "$work/$2.rival"
    else
        cat "$work/$2.why" 2>/dev/null || echo "not measured"
    fi
}

# rival_best MODE...: the one with the largest first figure
rival_best() {
    for mode; do [ ! -s "$work/$mode.rival" ] || echo "$(median 1 "$work/$mode.rival") $mode"; done | sort -rn | head -1 | cut -d' ' -f2
}

rivals_end() {
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
    for mode in $modes; do
        local in=in_${mode//-/_} out=out_${mode//-/_}
        [ -z "${!in:-}" ] || eval "exec ${!in}>&- ${!out}<&-"
        unset "$in" "$out"
    done
    wait "${pids[@]}" 2>/dev/null || true
    pids=()
}
