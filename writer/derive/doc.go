// Package derive makes the rows of the derived tables from those of events and messages. Package writer writes them
// with a run, and package check makes them again to check them. docs/adr/0015-the-profile-is-derived.md says why they
// exist.
//
// Each type takes batches of rows in the order in which a run has them, keeps a bounded amount of state, and gives back
// the rows of its table:
//
//	profile.go          Profiler: the table profile, from one file of events
//	waits.go            WaitSums: waits, transfers and collective_waits, in four stages:
//	calls.go              epochCalls: what the calls of an epoch waited for in point-to-point communication
//	pairs.go              pairSums: the rows of waits
//	transfers.go          transferSums: the rows of transfers
//	collectivewaits.go    collectiveSums: the rows of collective_waits
//	repeats.go          RepeatSums: repeats, in several passes over messages
//	channels.go         ChannelSums: channels, from messages in any order
//	payloads.go         PayloadSums: no table, but the manifest's fingerprint of payloads
//	collectives.go      CollectiveSums: collective_calls and collective_parts, from events and parts
//	activity.go         ActivitySums: activity, from events and messages in any order
//	overlaps.go         Overlaps: no table, but the manifest's count of overlapping calls
package derive
