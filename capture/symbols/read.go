package symbols

import (
	"errors"
	"fmt"

	"github.com/commq/commq/capture/spool"
)

// Read takes in all modules and call sites that a spool file defines; call it for each file of a process. What follows a
// call that never returned may be half written: a definition there that is not whole is left out. Elsewhere it is an error.
func (s *Sites) Read(f *spool.File) error {
	returned := true
	for i := 0; i < len(f.Slots) && f.Slots[i].Kind != spool.End; i++ {
		switch f.Slots[i].Kind {
		case spool.KindCall:
			returned = f.Slots[i].T1 != 0
		case spool.KindDef:
			d := f.Slots[i].AsDef()
			if d.What != spool.DefModule && d.What != spool.DefSite {
				continue
			}
			data, err := payloadOf(d, f.Slots[i+1:])
			if err == nil {
				err = s.Define(d.What, d.ID, data)
			}
			if err != nil && returned {
				return fmt.Errorf("%s: slot %d: %w", f.Name, i, err)
			}
		}
	}
	return nil
}

// payloadOf collects a definition's payload from the slots behind it.
func payloadOf(d *spool.Def, slots []spool.Call) ([]byte, error) {
	var data []byte
	for i := 0; len(data) < int(d.Bytes); i++ {
		if i == len(slots) || slots[i].Kind != spool.KindBlob {
			return nil, errors.New("its payload is cut short")
		}
		b := slots[i].AsBlob()
		if b.N == 0 || int(b.N) > len(b.Data) {
			return nil, fmt.Errorf("a BLOB slot with %d bytes", b.N)
		}
		data = append(data, b.Data[:b.N]...)
	}
	return data, nil
}

// Job names the call sites of a job's ranks while its spool is there: for reports on a job that hangs or was killed. The zero
// value knows none. It is not for concurrent use.
type Job struct {
	// Resolver finds the functions.
	Resolver Resolver

	ranks map[int32]*Sites
	texts map[text]string
}

type text struct {
	rank int32
	site uint32
}

// Rank are the call sites of a rank, to be filled in by Define or Read.
func (j *Job) Rank(rank int32) *Sites {
	if j.ranks == nil {
		j.ranks = map[int32]*Sites{}
	}
	if j.ranks[rank] == nil {
		j.ranks[rank] = &Sites{}
	}
	return j.ranks[rank]
}

// Site is where a call of a rank stands, by the number in its CALL slot: "exchange (halo.c:41)", or less where less is known;
// empty when the site is not defined.
func (j *Job) Site(rank int32, site uint32) string {
	s := j.ranks[rank]
	if s == nil {
		return ""
	}
	path := s.Path(site)
	if path == nil {
		return ""
	}
	key := text{rank, site}
	if known, ok := j.texts[key]; ok {
		return known
	}
	if j.texts == nil {
		j.texts = map[text]string{}
	}
	j.texts[key] = j.Resolver.Describe(path)
	return j.texts[key]
}
