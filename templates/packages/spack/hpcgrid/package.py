# SPDX-License-Identifier: Apache-2.0
# Spack 1.0 or later. Copy this folder to packages/ of a Spack repository, set `git` to where your copy of hpcgrid is, and
# `spack install hpcgrid`.
from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Hpcgrid(CMakePackage):
    """Runs a matrix of experiments on Slurm and tabulates speedup and efficiency."""

    git = "file:///path/to/hpcgrid"

    license("Apache-2.0")

    version("main", branch="main")

    variant("slurm", default=True, description="hpcgrid-slurm, which links libslurm (GPL-2.0-or-later)")
    variant("rest", default=True, description="hpcgrid-rest, for slurmrestd")
    variant("worker", default=True, description="hpcgrid-worker, which trains")
    variant("cuda", default=False, when="+worker", description="CUDA backend of hpcgrid-worker")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("jansson@2.13:")
    depends_on("jq@1.6:")
    depends_on("xxhash")
    depends_on("sqlite@3.8:")
    depends_on("ncurses")
    depends_on("slurm@22-05:", when="+slurm")
    depends_on("curl@7.61:", when="+rest")
    with when("+worker"):
        depends_on("mpi@3:")
        depends_on("openblas threads=openmp")
        depends_on("zlib-api")
        depends_on("utf8proc")
        depends_on("protobuf-c")
        depends_on("cuda@12.2:", when="+cuda")

    def cmake_args(self):
        args = [
            self.define("BUILD_TESTING", False),
            self.define_from_variant("HPCGRID_WORKER", "worker"),
            self.define("HPCGRID_SLURM", "ON" if "+slurm" in self.spec else "OFF"),
            self.define("HPCGRID_REST", "ON" if "+rest" in self.spec else "OFF"),
            self.define("HPCGRID_CUDA", "ON" if "+cuda" in self.spec else "OFF"),
        ]
        if "+slurm" in self.spec:
            args.append(self.define("SLURM_ROOT", self.spec["slurm"].prefix))
        return args
