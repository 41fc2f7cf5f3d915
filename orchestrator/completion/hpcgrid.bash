# SPDX-License-Identifier: Apache-2.0
# bash: completes hpcgrid's commands, options, runs, keys and values. hpcgrid itself knows them (cmd/complete.c).
_hpcgrid() {
    local line=${COMP_LINE:0:COMP_POINT} words word kept=0 found
    read -ra words <<<"$line"
    [[ $line != *[[:blank:]] ]] || words+=("")
    word=${words[-1]}
    if [[ $word == [\'\"]* ]]; then
        word=${word:1} # bash replaces what is behind the quote
    else
        found=${word##*[=:]} # and the part behind = or :
        kept=$((${#word} - ${#found}))
    fi
    words[-1]=$word
    COMPREPLY=()
    while IFS= read -r found; do
        COMPREPLY+=("${found:kept}")
    done < <("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null | cut -f 1)
    [[ ${COMPREPLY[0]:-} != *[=/] ]] || compopt -o nospace
}
complete -F _hpcgrid hpcgrid
