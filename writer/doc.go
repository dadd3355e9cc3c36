// Package writer writes runs to disk, reads them back, checks them and manages stores. It is the only package that
// knows Parquet.
//
// A run is a folder in a store: a Parquet file or several for each table, and manifest.json. It is written into a
// hidden folder of the store, synced, and renamed, so a folder with a manifest always holds a complete run.
//
// Writing a run, in the order of its stages:
//
//	run.go       Run: Create, Write, Commit, Abort
//	place.go     the hidden folder, its lock, and how a complete run gets its name
//	files.go     the files of a run while they are written
//	clean.go     checks and repairs cells before they are written
//	split.go     splits a batch of events into two row groups: point-to-point and other rows
//	parquet.go   one Parquet file: schema, metadata, row groups, footer
//	column.go    one column of a row group: pages, encoding, statistics
//	load.go      the rows of a column -> the values to encode
//	encode.go    the encodings of Parquet, for whole pages
//	sums.go      derived tables that need whole tables; package derive does the sums
//	manifest.go  reading, writing and validating manifests
//	parts.go     a run that several processes write
//	shards.go    which file the rows of a rank go to
//	copy.go      copying and changing tables of another run
//	times.go     RowTimes: the times of rows, on disk, for engines that find them in any order
//
// Reading:
//
//	read.go      ReadTable: a table, file by file
//	opened.go    Opened: a run that must not be replaced while it is read
//	bounds.go    how large a page may be
//	limits.go    what values a run cannot have
//	merge.go     merges the row groups that split.go split
//	decode.go    the encodings of Parquet, a batch at a time
//	epochs.go    Epochs: a table, epoch by epoch, all files side by side
//	late.go      reads columns that are rarely needed only where they are
//
// Whole runs and stores:
//
//	check.go     Check: everything that must hold in a run; package check has the rules
//	verify.go    VerifyRun: compares files with their hashes in the manifest
//	remake.go    MakeProfile: makes the derived tables of a run again
//	compact.go   Compact: rewrites a run in few files
//	receive.go   Receive: adds a run from elsewhere to a store
//	name.go      names of runs, and finding runs by name, path or pattern
//	store.go     List and Remove
//	leftovers.go  sweeps what killed removals left
//	lock.go      lock files
//	publish.go   Publish: lays runs out by table, for SQL engines that want one folder per table
//	publishall.go  the same for several runs
//	checkpoint.go  Checkpoint: a folder with the state of a long task
//
// The packages below: digest computes the digests of tables and runs, derive makes the rows of derived tables, check
// has the rules of a run, and objects keeps runs in object storage.
package writer
