# SPDX-License-Identifier: Apache-2.0

from spack_repo.builtin.build_systems.go import GoPackage

from spack.package import *


class Commq(GoPackage):
    """commq answers questions about how MPI programs communicate: it records unmodified
    programs as Parquet tables, and asks, diagnoses, simulates, predicts and checks them."""

    homepage = "https://github.com/commq/commq"
    git = "https://github.com/commq/commq.git"

    license("Apache-2.0")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("cxx", type="build")  # DuckDB is linked
    depends_on("go@1.26:", type="build")
    # The capture library looks for these when it runs: faster hashes, call paths.
    depends_on("isa-l", type="run", when="target=x86_64:")
    depends_on("libunwind", type="run")

    build_directory = "cmd/commq"

    def setup_run_environment(self, env):
        for name in ("isa-l", "libunwind"):
            if name in self.spec:
                env.prepend_path("LD_LIBRARY_PATH", self.spec[name].libs.directories[0])

    @run_after("install")
    def install_completions(self):
        commq = Executable(self.prefix.bin.commq)
        for shell, folder, name in (
            ("bash", bash_completion_path(self.prefix), "commq"),
            ("zsh", zsh_completion_path(self.prefix), "_commq"),
            ("fish", fish_completion_path(self.prefix), "commq.fish"),
        ):
            mkdirp(folder)
            with open(join_path(folder, name), "w") as file:
                commq("completion", shell, output=file)

    def test_density(self):
        """the program starts and lists its queries"""
        commq = Executable(self.prefix.bin.commq)
        out = commq("query", "--list", output=str.split, error=str.split)
        assert "density" in out
