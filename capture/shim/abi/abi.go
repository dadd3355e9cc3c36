// Package abi holds what commq knows of MPI libraries: which sonames belong to which ABI, and with which versions
// captures are tested (compat.go, from which docs/COMPAT.md is generated).
package abi

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The MPI libraries that the shim can be built for.
const (
	OpenMPI = "openmpi"
	MPICH   = "mpich"
)

// ABI is a set of MPI libraries that one shim serves: they agree on handles, constants and statuses.
type ABI struct {
	// Name is that of the files in a release, the library and the major version from which on it serves: openmpi-5.
	Name string
	// Library is OpenMPI or MPICH.
	Library string
	// Title is for people.
	Title string
	// Standard means the ABI that MPI 5 defines, which a library has beside its own.
	Standard bool
}

// All are those that releases bring a shim for, of each library the oldest first. Versions of a library agree on
// most, but the later ones have functions that the earlier lack: a shim that is too new would end a program.
var All = []ABI{
	{"openmpi-4", OpenMPI, "Open MPI 4", false},
	{"openmpi-5", OpenMPI, "Open MPI 5", false},
	{"mpich-3", MPICH, "the ABI of MPICH 3", false},
	{"mpich-4", MPICH, "the ABI of MPICH 4", false},
	Standard,
}

// Standard is the ABI that MPI 5 defines. So far MPICH has it, so its programs are started as those of MPICH.
var Standard = ABI{"mpiabi-1", MPICH, "the ABI of MPI 5", true}

// Since is the major version of the library from which on the ABI serves.
func (a ABI) Since() int {
	major, _ := strconv.Atoi(a.Name[strings.LastIndex(a.Name, "-")+1:])
	return major
}

// ForVersion returns the ABI of a major version of a library; of a version that is older than all, or 0, the oldest
// ABI. The library must be OpenMPI or MPICH.
func ForVersion(library string, major int) ABI {
	var best *ABI
	for i := range All {
		a := &All[i]
		if a.Library == library && !a.Standard && (best == nil || major >= a.Since()) {
			best = a
		}
	}
	return *best
}

// ForFile returns the ABI of the library in a file, which has a major version; see ForVersion.
func ForFile(library, file string, major int) ABI {
	if standard.MatchString(filepath.Base(file)) {
		return Standard
	}
	return ForVersion(library, major)
}

// standard are the sonames of libraries with the ABI of MPI 5.
var standard = regexp.MustCompile(`^libmpi_abi\.so\.1$`)

// families are the sonames of the libraries with the functions of C, and of those that programs in Fortran need
// beside them, with examples for people. Cray MPICH has a library for each compiler, with its version where the
// version matters: libmpi_cray.so.12, libmpi_gnu_123.so.12; from version 9 on libmpi_gnu.so.12.
var families = []struct {
	library    string
	title      string
	c, fortran *regexp.Regexp
	examples   []string
}{
	{OpenMPI, "Open MPI", regexp.MustCompile(`^libmpi\.so\.40$`), regexp.MustCompile(`^libmpi_(mpifh|usempif08)\.so\.40$`),
		[]string{"libmpi.so.40", "libmpi_mpifh.so.40", "libmpi_usempif08.so.40"}},
	{MPICH, "MPICH", regexp.MustCompile(`^(libmpi|libmpich|libmpi_` + crayCompilers + `)\.so\.12$`),
		regexp.MustCompile(`^(libmpifort|libmpichfort|libmpifort_` + crayCompilers + `)\.so\.12$`),
		[]string{"libmpi.so.12", "libmpifort.so.12", "libmpich.so.12", "libmpichfort.so.12",
			"libmpi_cray.so.12", "libmpi_gnu_123.so.12", "libmpifort_intel.so.12"}},
	{MPICH, "MPI 5", standard, standard, []string{"libmpi_abi.so.1"}}, // it has no library for Fortran
}

const crayCompilers = `(cray|gnu|intel|nvidia|amd|aocc)(_[0-9]+)?`

// LibraryOf returns the MPI library (OpenMPI or MPICH) to whose ABI a shared library belongs, by its soname; empty if
// it belongs to none.
func LibraryOf(soname string) string {
	for _, f := range families {
		if f.c.MatchString(soname) || f.fortran.MatchString(soname) {
			return f.library
		}
	}
	return ""
}

// HasC reports whether a soname is one of an MPI library with the functions of C, which tell its version.
func HasC(library, soname string) bool {
	for _, f := range families {
		if f.library == library && f.c.MatchString(soname) {
			return true
		}
	}
	return false
}

// others begin the sonames of MPI libraries of other vendors or versions.
var others = []string{"libmpi.so", "libmpich.so", "libmpich_", "libmpi_abi.so", "libmpi_mt.so", "libmpi_ibm.so",
	"libmpi_cray", "libmpi_gnu", "libmpi_intel", "libmpi_nvidia", "libmpi_aocc", "libmpi_amd"}

// IsUnknown reports whether a soname looks like that of an MPI library whose ABI is unknown.
func IsUnknown(soname string) bool {
	if LibraryOf(soname) != "" {
		return false
	}
	for _, prefix := range others {
		if strings.HasPrefix(soname, prefix) {
			return true
		}
	}
	return false
}
