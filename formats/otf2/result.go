package otf2

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/commq/commq/schema"
)

// creator begins the name of the program that wrote an archive, where that was commq.
const creator = "commq"

// add adds the counts of a location.
func (t *tally) add(o *tally) {
	t.events += o.events
	t.outside += o.outside
	t.unpaired += o.unpaired
	t.noRecord += o.noRecord
	for i := range t.fits {
		t.fits[i] += o.fits[i]
	}
	for i := range t.skipped {
		t.skipped[i] += o.skipped[i]
		t.unknown[i] += o.unknown[i]
	}
	for name, n := range o.mute {
		t.mute[name] += n
	}
}

func (j *job) manifest() *schema.Manifest {
	origin := j.o.Origin
	origin.Trace = &schema.Trace{Format: "otf2", File: filepath.Base(j.path), Program: j.archive.creator}
	m := j.Manifest(origin, j.warnings())
	m.Stack = j.table.depth()
	m.Callsites = m.Stack > 0
	return m
}

// depth returns the number of frames of the longest call path.
func (t *siteTable) depth() (most int32) {
	depths := make([]int32, t.rows.Len())
	for i, parent := range t.rows.Parent {
		depths[i] = 1
		if parent != null32 {
			depths[i] = depths[parent] + 1
		}
		most = max(most, depths[i])
	}
	return most
}

// warnings tell what the format lacks, and what was skipped.
func (j *job) warnings() []string {
	w := []string{"OTF2 has no payload hashes, datatypes and buffers, and does not tell whether a receive was " +
		"posted with a wildcard; these columns are null."}
	say := func(n int64, format string) {
		if n > 0 {
			w = append(w, fmt.Sprintf(format, n))
		}
	}
	t := &j.tally
	read := fmt.Sprintf("Read: %d events of %d locations", t.events, j.archive.locations)
	if names := j.skippedNames(); names != "" {
		read += "; of them skipped, or calls without a row: " + names
	}
	w = append(w, read+".")
	for _, name := range sortedKeys(j.skipped) {
		w = append(w, fmt.Sprintf("Skipped: %d %s.", j.skipped[name], name))
	}
	for id, n := range t.unknown {
		say(n, fmt.Sprintf("Events of a later version of OTF2 (record %d), skipped: %%d.", id))
	}
	for _, id := range sortedKeys(j.unknown) {
		say(j.unknown[id], fmt.Sprintf("Definitions of a later version of OTF2 (record %d), skipped: %%d.", id))
	}
	say(t.outside, "Records of MPI outside a call, each a row of its own: %d.")
	say(t.noRecord, "Collective calls without a record, which have no communicator: %d.")
	say(t.fits[fitsBoth], "Collective calls that may be in place (MPI_IN_PLACE) by the bytes that Score-P counts, taken "+
		"as not in place: %d.")
	say(t.fits[fitsNothing], "Collective calls whose bytes are not those that Score-P counts of any call; they have these "+
		"bytes: %d.")
	say(t.unpaired, "Ends of regions that did not begin: %d.")
	return w
}

// skippedNames lists the events and calls that have no row.
func (j *job) skippedNames() string {
	var words []string
	for id, n := range j.tally.skipped {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, eventName(uint8(id))))
		}
	}
	for _, name := range sortedKeys(j.tally.mute) {
		words = append(words, fmt.Sprintf("%d %s", j.tally.mute[name], name))
	}
	return strings.Join(words, ", ")
}
