// Package run is the room between the engines (simulation, detection, prediction, replay) and the files of a run.
// Engines know no files: they take slices and streams of rows. This package reads these from a run on disk, once and
// for all of them, and writes the runs that engines make.
//
// Reading, in the order in which a command uses it:
//
//   - find.go: Find, FindAll and FindPresent (with manifests), Match and Each (folders only) resolve names, paths and
//     patterns in a store, by writer/name.go; all.go finds all runs of a store.
//   - describe.go: what a run is and how it was captured, in words.
//   - discloses.go: what a run tells about the machine and its users, for whoever passes it on.
//   - need.go: Need lists what an engine has to find in a run. One error names everything the run lacks and how to
//     capture it again.
//   - leftout.go: what a run lacks of its program's calls, in words.
//   - open.go: Open checks the need and reads the small tables: communicators (comm.go, with neighbourhoods in
//     topology.go), datatypes and ranks.
//     callsite.go reads call sites on first use; table.go reads whole tables and the profile;
//     window.go finds windows without groups, delivered.go which sends and receives without bytes moved a message.
//   - stream.go: streams of events, messages and parts, whole or epoch by epoch, with the columns that are wanted.
//
// Writing:
//
//   - rewrite.go: Rewrite makes a run from another one, table by table. It is the one place that resets what does not
//     hold in a run whose times changed: clock offsets, polls, and the counts of choices.
//   - retime.go: Retimer makes a run with the calls of another one and new times, as simulations do.
//   - untimed.go: WriteUntimed writes a run from generated calls, as extrapolations do.
//   - match (a package): pairs the sends and receives of a run that has none of its messages yet.
package run
