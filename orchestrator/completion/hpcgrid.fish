# SPDX-License-Identifier: Apache-2.0
# fish: completes hpcgrid's commands, options, runs, keys and values. hpcgrid itself knows them (cmd/complete.c).
complete -c hpcgrid -f -a '(set -l words (commandline -opc); $words[1] complete -- $words[2..] (commandline -ct) 2>/dev/null)'
