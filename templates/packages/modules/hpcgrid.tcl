#%Module1.0
## SPDX-License-Identifier: Apache-2.0
## Environment Modules: save as hpcgrid/0.1.0 in a folder of MODULEPATH and set the prefix. Works for `cmake --install` and the tar file.
set prefix /opt/hpcgrid

proc ModulesHelp { } {
    puts stderr "hpcgrid runs a matrix of experiments on Slurm and tabulates speedup and efficiency: hpcgrid help"
}
module-whatis "run a matrix of experiments on Slurm"
conflict hpcgrid
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
prepend-path XDG_DATA_DIRS $prefix/share
prepend-path FPATH $prefix/share/zsh/site-functions
