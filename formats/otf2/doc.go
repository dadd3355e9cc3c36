// Package otf2 reads and writes traces in the Open Trace Format 2, which Score-P, EZTrace and others write, without
// OTF2's own library. The layout of files and records is that of OTF2 3.2; docs/reference/otf2.md tells what becomes
// of each record.
//
// In reading order:
//
//	cursor.go       numbers, texts and records in memory
//	archive.go      the anchor file, files of locations, blocks compressed with zlib
//	definitions.go  global and local definitions, mapping tables, clocks
//	layout.go       which locations are the threads of which rank; communicators
//	stream.go       the events of a location, in bounded memory
//	calls.go        events become calls: regions of MPI with the records inside
//	fill.go         what each record says about its call
//	scorep.go       bytes of collective operations as Score-P counts them
//	shared.go       what the threads of a rank begin and complete for each other
//	sites.go        call paths
//	skim.go         what writing needs to know, without the records
//	import.go       opens the archive for package timed, which makes the run
//	result.go       the manifest, and what was skipped
//	export.go       a run becomes an archive
//	writer.go       records and chunks that the export writes
package otf2
