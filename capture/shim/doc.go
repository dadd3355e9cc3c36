// Package shim holds the C library that is preloaded into MPI programs. It detects the MPI library that a program is
// linked to, and takes the library that a release brings for it, or compiles the embedded sources with that library's
// own compiler wrapper, once per library, version and compiler. README.md shows the layers of the sources;
// docs/method/capture.md describes what is recorded and how.
//
// # The files
//
//	shim.go       the embedded sources and the files of the API
//	detect.go     which MPI library a compiler wrapper or a program belongs to
//	imports.go    what an ELF file needs and imports
//	choose.go     which library a program gets: brought along, or compiled
//	build.go      the cache of compiled libraries, and what a library must have
//	compile.go    a call of the compiler and its errors
//	once.go       one process compiles while the others wait, and failures are remembered
//	serves.go     whether a brought library loads, and what it does not record
//	prebuilt.go   the libraries that a release brings; without a release, and on other machines, prebuilt_none.go
//	prebuilt_amd64.go
//	prebuilt_arm64.go
//	prebuilt_none.go
package shim
