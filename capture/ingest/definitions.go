package ingest

import (
	"fmt"
	"time"

	"github.com/commq/commq/capture/ingest/handles"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// newManifest makes the manifest of a run. w are the warnings so far; Commit fills in the tables.
func newManifest(j *job, p *plan, o *Options, t *tally, sim *simulation, w warnings) *schema.Manifest {
	counts := t.Counts
	counts.Choices, counts.OutOfOrder, counts.EarlyCollectives = sim.choices, sim.outOfOrder, sim.early
	collectives := t.collectives()
	for _, n := range collectives {
		counts.Collectives += n
	}
	j.warnDropped(&w)
	sim.warn(&w)
	t.warn(&w)
	p.warnOpen(j, &w)
	first := &j.ranks[0].files[0].Header
	timeOrigin := "measured"
	if j.virtual() {
		timeOrigin = "virtual"
	}
	return &schema.Manifest{
		Ranks: j.size, TimeOrigin: timeOrigin, ComputeClock: computeClocks[first.ComputeClock],
		TimeResolutionNs: o.TimeResolutionNs,
		Record:           o.Record, Filters: p.filter.words(), Hash: hashAlgorithms[first.Hash],
		HashVerify: first.HashVerify != 0, Ended: j.endedName(), EndNs: t.EndNs, Epochs: p.epochs(),
		Callsites: p.stack > 0, Stack: p.stack, Counters: counterSources[first.Counters],
		Counts: counts, Collectives: collectives, Warnings: w, Origin: p.origin(j, o.Origin, sim),
	}
}

// counterSources are the manifest's words for the header's counters.
var counterSources = [...]string{"", "perf", "fake"}

// computeClocks are the manifest's words for the header's compute_clock.
var computeClocks = [...]string{"none", "wall", "cpu"}

// hashAlgorithms are the manifest's words for the header's hash.
var hashAlgorithms = [...]string{"none", "crc64", "crc32"}

// origin adds what the spool knows to what the caller knows.
func (p *plan) origin(j *job, o schema.Origin, sim *simulation) schema.Origin {
	h := &j.ranks[0].files[0].Header
	o.Simulation = sim.origin
	if o.Command == nil {
		o.Command = []string{spool.Text(h.Program[:])}
	}
	if o.MPI == "" {
		o.MPI = handles.ValidText(spool.Text(h.MPILibrary[:]))
	}
	if o.Hosts == nil {
		for i := range p.hosts {
			o.Hosts = append(o.Hosts, handles.ValidText(p.hosts[i].Name))
		}
	}
	if o.Cores == nil {
		o.Cores = p.cores(j)
	}
	if o.Started == "" {
		o.Started = j.started().UTC().Format(time.RFC3339)
	}
	if o.Job == "" {
		o.Job = j.idText()
	}
	return o
}

// idText returns the job's id as 16 hexadecimal digits.
func (j *job) idText() string { return fmt.Sprintf("%016x", j.id) }

// writeDefinitions writes the small tables: comms, datatypes, callsites and ranks.
func (p *plan) writeDefinitions(j *job, out sink) error {
	callsites := &schema.Callsites{}
	for i := range p.sites {
		callsites.Append(&p.sites[i])
	}
	for _, b := range []schema.Batch{p.comms.Rows(), p.types, callsites, p.rankRows(j)} {
		if err := out.Write(0, b); err != nil {
			return err
		}
	}
	return nil
}

// rankRows returns the rows of the table ranks. A rank without records counts as killed, on the first host.
func (p *plan) rankRows(j *job) *schema.RankInfos {
	b := &schema.RankInfos{}
	for _, r := range j.ranks {
		for next := int32(b.Len()); next < r.rank; next++ {
			b.Append(missingRank(next))
		}
		b.Append(p.rankRow(r))
	}
	for next := int32(b.Len()); next < j.size; next++ {
		b.Append(missingRank(next))
	}
	return b
}

func missingRank(rank int32) *schema.RankInfo {
	row := schema.NullRankInfo
	row.Rank, row.Ended = rank, schema.EndedKilled
	return &row
}

func (p *plan) rankRow(r *rankSpool) *schema.RankInfo {
	row := schema.NullRankInfo
	row.Rank, row.Host, row.Threads = r.rank, p.hostOf[r.rank], int32(len(r.files))
	row.Events, row.Polls = r.facts.Rows, int64(r.facts.Polls)
	row.Ended = r.ended()
	row.Dropped = r.dropped()
	if level := r.files[0].Header.ThreadLevel; level >= 0 {
		row.ThreadLevel = level
	}
	o := &p.hosts[row.Host].Offsets
	row.ClockOffsetInitNs, row.ClockErrorInitNs = o.InitNs, o.InitErrorNs
	row.ClockOffsetFinalNs, row.ClockErrorFinalNs = o.FinalNs, o.FinalErrorNs
	return &row
}

// dropped returns the number of calls of the rank that are known to be missing.
func (r *rankSpool) dropped() int64 {
	n := r.facts.Damaged
	for _, f := range r.files {
		n += int64(f.Header.Dropped)
	}
	return n
}

// ended returns how the process ended, an index of schema.EndedNames.
func (r *rankSpool) ended() int16 {
	ended := schema.EndedKilled
	for _, f := range r.files {
		switch f.Header.Ended {
		case spool.EndedAborted:
			return schema.EndedAborted
		case spool.EndedFinalized:
			ended = schema.EndedFinalized
		}
	}
	return ended
}

// endedName returns how the job ended: finalized only when every rank did.
func (j *job) endedName() string {
	ended := schema.EndedFinalized
	if len(j.ranks) < int(j.size) {
		ended = schema.EndedKilled
	}
	for _, r := range j.ranks {
		switch r.ended() {
		case schema.EndedAborted:
			return schema.EndedNames[schema.EndedAborted]
		case schema.EndedKilled:
			ended = schema.EndedKilled
		}
	}
	return schema.EndedNames[ended]
}

// warnOpen warns of calls that never returned, and of ranks that ended between calls.
func (p *plan) warnOpen(j *job, w *warnings) {
	named := 0
	warn := func(format string, args ...any) {
		if named++; named <= maxNamed {
			w.add(format, args...)
		}
	}
	for _, r := range j.ranks {
		var h *handles.Resolver
		if len(r.facts.Open) > 0 {
			h = handles.NewResolver(p.comms, r.facts.Handles)
		}
		for i := range r.facts.Open {
			warn("Rank %d never returned from %s.", r.rank, describeCall(&r.facts.Open[i], h))
		}
		if len(r.facts.Open) == 0 && r.ended() == schema.EndedKilled {
			warn("Rank %d ended outside MPI and without MPI_Finalize, after %s.", r.rank,
				lastCallName(r.facts.LastCall))
		}
	}
	if named > maxNamed {
		w.add("%d more calls never returned, or ranks ended outside MPI.", named-maxNamed)
	}
}

// lastCallName names the call that a rank entered last.
func lastCallName(call uint16) string {
	if call == 0 {
		return "no recorded call"
	}
	return schema.CallNames[call]
}

// describeCall names a call, its peer and its tag.
func describeCall(c *spool.Call, h *handles.Resolver) string {
	text := schema.CallNames[c.Call]
	direction := ""
	switch ops[c.Call] {
	case opSend, opIsend, opSendrecv, opIsendrecv:
		direction = " to"
	case opRecv, opIrecv, opProbe, opMprobe:
		direction = " from"
	}
	if direction == "" {
		return text
	}
	if c.Flags&spool.FlagProcNull != 0 {
		return text + direction + " MPI_PROC_NULL"
	}
	if c.Flags&spool.FlagAnySource != 0 {
		text += direction + " any rank"
	} else if c.Peer != schema.NullInt32 {
		text += fmt.Sprintf("%s rank %d", direction, c.Peer)
	}
	if c.Flags&spool.FlagAnyTag != 0 {
		text += ", any tag"
	} else if c.Tag != schema.NullInt32 {
		text += fmt.Sprintf(", tag %d", c.Tag)
	}
	if v, ok := h.Comm(c.Comm); ok && c.Comm != handles.World {
		text += fmt.Sprintf(", on communicator %d", h.View(v).ID)
	}
	return text
}
