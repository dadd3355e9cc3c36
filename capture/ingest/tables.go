package ingest

import (
	"fmt"
	"time"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// writeDefinitions writes the small tables.
func (j *job) writeDefinitions(out sink) error {
	if err := j.comms.write(out); err != nil {
		return err
	}
	if err := j.types.write(out); err != nil {
		return err
	}
	if err := j.sites.write(out); err != nil {
		return err
	}
	return j.writeRanks(out)
}

// writeRanks writes a row for every rank; one whose records are missing counts as killed, on the first host.
func (j *job) writeRanks(out sink) error {
	return out.Write(0, j.rankRows())
}

// rankRows are the rows of the table ranks.
func (j *job) rankRows() *schema.RankInfos {
	b := &schema.RankInfos{}
	for _, r := range j.ranks {
		for next := int32(b.Len()); next < r.rank; next++ {
			b.Append(missingRank(next))
		}
		b.Append(j.rankInfo(r))
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

func (j *job) rankInfo(r *rankSpool) *schema.RankInfo {
	row := schema.NullRankInfo
	row.Rank, row.Host, row.Threads, row.Events, row.Polls = r.rank, r.host, int32(len(r.files)), r.rows, int64(r.polls)
	row.Ended = r.ended()
	for _, f := range r.files {
		row.Dropped += int64(f.Header.Dropped)
	}
	if level := r.files[0].Header.ThreadLevel; level >= 0 {
		row.ThreadLevel = level
	}
	o := &j.hosts[r.host].offsets
	row.ClockOffsetInitNs, row.ClockErrorInitNs = o.init, o.initError
	row.ClockOffsetFinalNs, row.ClockErrorFinalNs = o.final, o.finalError
	return &row
}

// ended is how the process ended, an index into schema.EndedNames.
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

// ended is how the job ended: finalized only when every rank did.
func (j *job) ended() string {
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

// origin completes what the caller knows by what the spool knows.
func (j *job) origin() schema.Origin {
	o := j.o.Origin
	h := &j.ranks[0].files[0].Header
	if o.Command == nil {
		o.Command = []string{spool.Text(h.Program[:])}
	}
	if o.MPI == "" {
		o.MPI = validText(spool.Text(h.MPILibrary[:]))
	}
	if o.Hosts == nil {
		for i := range j.hosts {
			o.Hosts = append(o.Hosts, validText(j.hosts[i].name))
		}
	}
	if o.Started == "" {
		first := h.RealtimeNs
		for _, r := range j.ranks {
			first = min(first, r.files[0].Header.RealtimeNs)
		}
		o.Started = time.Unix(0, first).UTC().Format(time.RFC3339)
	}
	if o.Job == "" {
		o.Job = fmt.Sprintf("%016x", j.id)
	}
	return o
}

// maxNamed is how many calls in progress the warnings name one by one.
const maxNamed = 8

// warnOpen says which calls never returned, and which ranks ended between calls.
func (j *job) warnOpen() {
	named := 0
	warn := func(format string, args ...any) {
		if named++; named <= maxNamed {
			j.warn(format, args...)
		}
	}
	for _, r := range j.ranks {
		d := newDecoder(j, r)
		for _, o := range r.openCalls {
			warn("Rank %d never returned from %s.", r.rank, d.describe(&o.call))
		}
		if len(r.openCalls) == 0 && r.ended() == schema.EndedKilled {
			warn("Rank %d ended outside MPI and without MPI_Finalize, after %s.", r.rank, lastCallText(r.lastCall))
		}
	}
	if named > maxNamed {
		j.warn("%d more calls never returned, or ranks ended outside MPI.", named-maxNamed)
	}
}

// lastCallText names the call a rank entered last.
func lastCallText(call uint16) string {
	if call == 0 {
		return "no recorded call"
	}
	return schema.CallNames[call]
}

// describe is a call in words: its name, peer and tag.
func (d *decoder) describe(c *spool.Call) string {
	text := schema.CallNames[c.Call]
	to := ""
	switch ops[c.Call] {
	case opSend, opIsend, opSendrecv, opIsendrecv:
		to = " to"
	case opRecv, opIrecv, opProbe, opMprobe:
		to = " from"
	}
	if to == "" {
		return text
	}
	if c.Flags&spool.FlagProcNull != 0 {
		return text + to + " MPI_PROC_NULL"
	}
	if c.Flags&spool.FlagAnySource != 0 {
		text += to + " any rank"
	} else if c.Peer != schema.NullInt32 {
		text += fmt.Sprintf("%s rank %d", to, c.Peer)
	}
	if c.Flags&spool.FlagAnyTag != 0 {
		text += ", any tag"
	} else if c.Tag != schema.NullInt32 {
		text += fmt.Sprintf(", tag %d", c.Tag)
	}
	if v, ok := d.viewOf.get(c.Comm); ok && c.Comm != worldNumber {
		text += fmt.Sprintf(", on communicator %d", d.views[v].id)
	}
	return text
}
