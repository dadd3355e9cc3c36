package symbols

import (
	"errors"
	"fmt"

	"github.com/commq/commq/capture/spool"
)

// Read adds all modules and call sites that a spool file defines. Call it for each file of a process. An incomplete
// definition is skipped after a call that never returned, where it may be half written; elsewhere it is an error.
func (s *Sites) Read(f *spool.File) error {
	returned, r := true, spool.NewReader(f)
	for i := 0; ; i++ {
		slots := r.From(i, 1)
		if len(slots) == 0 || slots[0].Kind == spool.End {
			return f.Err()
		}
		switch slots[0].Kind {
		case spool.KindCall:
			returned = slots[0].T1 != 0
		case spool.KindDef:
			d := *slots[0].AsDef()
			if d.What != spool.DefModule && d.What != spool.DefSite {
				continue
			}
			data, err := payloadOf(&d, r, i+1)
			if err == nil {
				err = s.Define(d.What, d.ID, data)
			}
			if err != nil && returned {
				return fmt.Errorf("%s: slot %d: %w", f.Name, i, err)
			}
		}
	}
}

// payloadOf collects the payload of a definition from the slots from a number on.
func payloadOf(d *spool.Def, r *spool.Reader, at int) (data []byte, err error) {
	for ; len(data) < int(d.Bytes); at++ {
		slots := r.From(at, 1)
		if len(slots) == 0 || slots[0].Kind != spool.KindBlob && slots[0].Kind != spool.KindSum {
			return nil, errors.New("its payload is cut short")
		}
		if slots[0].Kind == spool.KindSum {
			continue
		}
		b := slots[0].AsBlob()
		if b.N == 0 || int(b.N) > len(b.Data) {
			return nil, fmt.Errorf("a BLOB slot with %d bytes", b.N)
		}
		data = append(data, b.Data[:b.N]...)
	}
	return data, nil
}

// Job describes the call sites of all ranks of a job, for reports on a job that hangs or was killed. The zero value
// has no call sites. It is not safe for concurrent use.
type Job struct {
	// Resolver looks up the functions.
	Resolver Resolver

	ranks map[int32]*Sites
	texts map[text]string
}

type text struct {
	rank int32
	site uint32
}

// Rank returns the call sites of a rank, for Define and Read to add to.
func (j *Job) Rank(rank int32) *Sites {
	if j.ranks == nil {
		j.ranks = map[int32]*Sites{}
	}
	if j.ranks[rank] == nil {
		j.ranks[rank] = &Sites{}
	}
	return j.ranks[rank]
}

// Site describes a call site of a rank, by the number in the CALL slot: "exchange (halo.c:41)", or less if less is
// known. It is empty when the site is not defined.
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
