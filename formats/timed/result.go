package timed

import (
	"fmt"

	"github.com/commq/commq/schema"
)

// ended returns how a rank ended: finalized if it called MPI_Finalize, and the members of each communicator made the
// same collective operations.
func (j *Job) ended(rank int) int16 {
	if j.Uneven == 0 && j.facts[rank].ended {
		return schema.EndedFinalized
	}
	return schema.EndedKilled
}

// Ended returns how the run ended: finalized if every rank did.
func (j *Job) Ended() int16 {
	for rank := range j.facts {
		if j.ended(rank) != schema.EndedFinalized {
			return schema.EndedKilled
		}
	}
	return schema.EndedFinalized
}

func (j *Job) writeRanks(out Sink) error {
	b := &schema.RankInfos{}
	for i := range j.facts {
		f := &j.facts[i]
		row := schema.NullRankInfo
		row.Rank, row.Host, row.Threads, row.Events, row.Polls = int32(i), j.trace.HostOf[i], max(f.threads, 1), f.rows,
			f.polls
		row.Ended = j.ended(i)
		b.Append(&row)
	}
	return out.Write(0, b)
}

// Manifest returns the manifest of the run, without call sites, with the warnings of the reader before its own.
func (j *Job) Manifest(origin schema.Origin, warnings []string) *schema.Manifest {
	origin.Hosts = j.trace.Hosts
	return &schema.Manifest{
		Ranks: int32(len(j.facts)), TimeOrigin: "measured", TimeResolutionNs: 1, ComputeClock: "wall", Record: "all",
		Hash: "none", Ended: schema.EndedNames[j.Ended()], EndNs: j.EndNs, Epochs: int32(len(j.bounds) + 1),
		Counts: j.Counts, Collectives: j.ByName, Warnings: append(warnings, j.warnings()...), Origin: origin,
	}
}

// warnings tell what does not fit together.
func (j *Job) warnings() (w []string) {
	say := func(n int64, format string) {
		if n > 0 {
			w = append(w, fmt.Sprintf(format, n))
		}
	}
	say(j.Resized, "Sends and receives that belong together by their order and have different sizes, and so count as "+
		"unmatched (parts of the program may not be recorded): %d.")
	say(j.Sourceless, "Receives whose source or tag the trace does not tell, and so count as unmatched: %d.")
	say(j.Shadowed, "Receives that come after one of these, which may have taken their message, and so count as "+
		"unmatched: %d.")
	say(j.Lost, "Completions of requests that no call made: %d.")
	say(j.Uneven, "Communicators whose members do not make the same collective operations: %d; the run counts as killed.")
	if j.Uneven == 0 && j.Ended() != schema.EndedFinalized {
		w = append(w, "Not every rank has an MPI_Finalize; the run counts as killed.")
	}
	return w
}
