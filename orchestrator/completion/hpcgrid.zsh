#compdef hpcgrid
# SPDX-License-Identifier: Apache-2.0
# zsh: completes hpcgrid's commands, options, runs, keys and values. hpcgrid itself knows them (cmd/complete.c).
local found
local -a open whole shown
for found in "${(@f)$(${(Q)words[1]} complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
    case ${found%%$'\t'*} in
    '') ;;
    *[=/]) open+=("${found%%$'\t'*}") ;;
    *) whole+=("${found%%$'\t'*}") shown+=("${found/$'\t'/  -- }") ;;
    esac
done
(( $#open )) && compadd -S '' -- "${open[@]}"
(( $#whole )) && compadd -l -d shown -- "${whole[@]}"
