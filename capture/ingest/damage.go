package ingest

import (
	"fmt"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// damage is a damaged stretch of a thread's records, and what of the rank is given up because of it.
type damage struct {
	file *spool.File
	spool.Damage
	calls uint64 // whole ones behind it in this file, which are not used either
	more  int    // further damaged stretches behind it in this file
}

// cutDamaged ends the records of a rank before the first damage in them. Whatever follows would be wrong: a lost call
// may have defined a communicator, freed a number that is used again, or sent a message, by whose place on its channel
// all later ones are matched. The other threads of the rank end there too, as they use the same definitions.
func (r *rankSpool) cutDamaged() {
	last := ^uint64(0) // when the last call was entered that is kept
	for _, f := range r.files {
		found := f.Damaged()
		if len(found) == 0 {
			continue
		}
		d := damage{file: f, Damage: found[0], more: len(found) - 1}
		end, entered := lastCallBefore(f, d.First)
		for i, s := range f.All() {
			if i >= d.End && s.Kind == spool.KindCall {
				d.calls++
			}
		}
		f.Cut(end)
		r.damage = append(r.damage, d)
		last = min(last, entered)
	}
	for _, f := range r.files {
		if len(r.damage) > 0 {
			f.Cut(callsUntil(f, last))
		}
	}
}

// lastCallBefore returns the first slot of the call that contains slot, where the kept records end, and when the call
// before it was entered.
func lastCallBefore(f *spool.File, slot int) (end int, entered uint64) {
	last := f.Header.Clock0Tick
	entered = last
	for i, s := range f.All() {
		if i >= slot {
			break
		}
		if s.Kind == spool.KindCall {
			end, entered, last = i, last, s.T0
		}
	}
	return end, entered
}

// callsUntil returns how many slots belong to calls that were entered until a tick.
func callsUntil(f *spool.File, tick uint64) int {
	for i, s := range f.All() {
		if s.Kind == spool.End || s.Kind == spool.KindCall && s.T0 > tick {
			return i
		}
	}
	return f.Len()
}

// String names the damaged block, its place in the file, and what is missing.
func (d *damage) String() string {
	at := func(slot int) int64 { return spool.HeaderBytes + int64(slot)*spool.SlotBytes }
	text := fmt.Sprintf("%s: slots %d to %d (bytes %d to %d) are damaged: their checksum does not fit", d.file.Name,
		d.First, d.End-1, at(d.First), at(d.End)-1)
	if d.more > 0 {
		text += fmt.Sprintf(", and %d more places behind them", d.more)
	}
	return text
}

// damagedCalls returns how many calls are lost with the damaged records, at least: what was in them is not known.
func (r *rankSpool) damagedCalls() (n int64) {
	for i := range r.damage {
		n += int64(r.damage[i].calls) + 1
	}
	return n
}

// checkDamage returns an error that names the first damaged header or records, unless the user wants what is whole.
func (j *job) checkDamage(partial bool) error {
	const advice = "; copy the file again, or ingest what is whole with --partial"
	if partial {
		return nil
	}
	for _, r := range j.ranks {
		for _, f := range r.files {
			if f.Doubtful {
				return fmt.Errorf("%s: damaged header: its checksum does not fit%s", f.Name, advice)
			}
		}
		if len(r.damage) > 0 {
			return fmt.Errorf("%s%s", &r.damage[0], advice)
		}
	}
	return nil
}

// addDamage adds a sentence for each file with a damaged header or damaged records.
func (w *warnings) addDamage(j *job) {
	for _, r := range j.ranks {
		for _, f := range r.files {
			if f.Doubtful {
				w.add("%s: the checksum of its header does not fit. The calls of rank %d are whole as far as their own "+
					"checksums tell; doubtful are its times, how it ended, how many calls it dropped and what it ran on.",
					f.Name, r.rank)
			}
		}
		for i := range r.damage {
			d := &r.damage[i]
			w.add("%s. The records of rank %d end before them: at least %d of its calls are missing, with their messages and collectives.",
				d, r.rank, d.calls+1)
		}
	}
}

// checkedCalls is up to how many calls every rule is checked of a run from records that no checksum vouches for.
const checkedCalls = 4 << 20

// troubled reports whether every rule is to be checked before the run gets its name, which takes three times as long as
// making it: records are known to be missing, or nothing shows that they are whole (processes that were killed,
// simulator ranks) and there are not too many.
func (j *job) troubled(m *schema.Manifest) bool {
	if m.Counts.Dropped > 0 || len(j.ranks) < int(j.size) {
		return true
	}
	if m.Counts.Calls > checkedCalls {
		return false
	}
	for _, r := range j.ranks {
		for _, f := range r.files {
			if f.Header.Sums == 0 || f.Header.Check == 0 || f.Doubtful {
				return true
			}
		}
	}
	return false
}
