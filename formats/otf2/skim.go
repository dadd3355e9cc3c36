package otf2

import (
	"context"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// skimmed is the number of events between two reports of progress.
const skimmed = 1 << 16

// skim reads of a rank what writing needs to know: when calls begin, and where they are called from. Records of MPI
// inside a call are counted, not read.
func (j *job) skim(ctx context.Context, rank int32, s *timed.Sketch) error {
	all, err := j.readers(rank)
	if err != nil {
		return err
	}
	before := int64(0)
	for _, r := range all {
		if err == nil {
			err = r.skim(ctx, s, before)
		}
		before += r.counts.events
		r.Close()
	}
	return err
}

// skim skims a location; before is the number of events of the rank's others.
func (r *reader) skim(ctx context.Context, s *timed.Sketch, before int64) error {
	var e event
	r.current = &timed.Call{}
	for {
		if r.counts.events%skimmed == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			s.Read(before + r.counts.events)
		}
		more, err := r.stream.next(&e)
		if err != nil {
			return err
		}
		if !more {
			s.Read(before + r.counts.events)
			return nil
		}
		r.counts.events++
		if err := r.glance(&e, s); err != nil {
			return err
		}
	}
}

// glance takes an event of a location that is skimmed.
func (r *reader) glance(e *event, s *timed.Sketch) error {
	switch e.id {
	case evtEnter, evtContextEnter:
		inside := r.open
		if err := r.event(e); err != nil {
			return err
		}
		if r.open && !inside {
			s.Start(r.current.Row.StartNs)
		}
		return nil
	case evtLeave, evtContextLeave:
		return r.event(e)
	case evtSend, evtIsend:
		s.Sends++
	case evtRecv, evtIrecv:
		s.Recvs++
	}
	r.started(e, s)
	if !r.open && callLike(e) != 0 && !r.foreign(e.id) && !opensOnly(e.id) {
		r.sites.use(r.top())
		s.Start(r.ns(e.time))
	}
	return nil
}

// started takes a request of MPI_Startall, which has a row for each: that of the first is the call's.
func (r *reader) started(e *event, s *timed.Sketch) {
	starts := r.open && schema.CallID(r.current.Row.Call) == schema.CallStartall
	if !starts || e.id != evtIsend && e.id != evtIrecvRequest && e.id != evtNBCRequest {
		return
	}
	if r.current.Posts = append(r.current.Posts, 0); len(r.current.Posts) > 1 {
		s.Start(r.current.Row.StartNs)
	}
}
