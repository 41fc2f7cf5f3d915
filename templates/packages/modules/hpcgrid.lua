-- SPDX-License-Identifier: Apache-2.0
-- Lmod: save as hpcgrid/0.1.0.lua in a folder of MODULEPATH and set the prefix. Works for `cmake --install` and the tar file.
local prefix = "/opt/hpcgrid"

help("hpcgrid runs a matrix of experiments on Slurm and tabulates speedup and efficiency: hpcgrid help")
whatis("Name: hpcgrid")
whatis("Description: run a matrix of experiments on Slurm")
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
prepend_path("XDG_DATA_DIRS", pathJoin(prefix, "share")) -- completion in bash and fish
prepend_path("FPATH", pathJoin(prefix, "share/zsh/site-functions"))
