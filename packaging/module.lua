-- For Lmod: module use FOLDER/share/modulefiles; module load commq
help("commq answers questions about how MPI programs communicate: commq help")
whatis("Name: commq")
whatis("Category: performance tools")
whatis("URL: https://github.com/commq/commq")
local base = myFileName():gsub("/share/modulefiles/commq/[^/]*$", "")
prepend_path("PATH", pathJoin(base, "bin")) -- man finds share/man beside it
