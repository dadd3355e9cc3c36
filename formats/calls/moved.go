package calls

import (
	"fmt"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// collective fills the row of a collective operation.
func (r *Rank) collective(a *Args, c *timed.Call) error {
	comm, err := r.comm(a.Comm)
	if err != nil {
		return err
	}
	row, call := &c.Row, schema.CallID(c.Row.Call)
	own, other := comm.Own(r.me), comm.PeerRanks(r.me)
	args := schema.CollectiveArgs{Peers: int64(len(other)), Group: int64(len(own)), Inter: comm.Inter(), Send: a.Send,
		Recv: a.Recv}
	row.Comm, row.ReduceOp = comm.ID, a.Op
	if call.Is(schema.FactRooted) {
		if err := rootOf(r.me, a, comm, row, &args); err != nil {
			return err
		}
	}
	if call.Is(schema.FactRooted) && !args.Root {
		a.To, a.From = nil, nil // only the root's counts are significant
	}
	for _, side := range [][]int64{a.To, a.From} {
		if side != nil && len(side) != len(other) && call != schema.CallReduceScatter {
			return fmt.Errorf("sizes for %d ranks of a communicator of %d", len(side), len(other))
		}
	}
	switch call {
	case schema.CallReduceScatter:
		if a.To != nil {
			args.Send = sum(a.To)
		}
		for i, rank := range own {
			if rank == r.me && i < len(a.To) {
				args.Recv = a.To[i]
			}
		}
	default:
		if a.To != nil {
			args.Send = sum(a.To)
		}
		if a.From != nil {
			args.Recv = sum(a.From)
		}
		c.To, c.From = a.To, a.From
	}
	row.SendBytes, row.RecvBytes = schema.CollectiveBytes(call, args)
	return nil
}

// rootOf fills the root of a collective operation.
func rootOf(me int32, a *Args, comm *timed.Comm, row *schema.Event, args *schema.CollectiveArgs) error {
	switch {
	case comm.Inter() && a.Root == Root:
		args.Root, row.RootWorld = true, me
	case comm.Inter() && a.Root == ProcNull:
		args.Aside = true
	default:
		world, ok := comm.Peer(me, a.Root)
		if !ok {
			return fmt.Errorf("root %d of a communicator of %d ranks", a.Root, len(comm.PeerRanks(me)))
		}
		args.Root, row.RootWorld = world == me, world
	}
	return nil
}

func sum(all []int64) (n int64) {
	for _, x := range all {
		n += x
	}
	return n
}

// constructor notes the communicator that a call makes.
func (r *Rank) constructor(a *Args, c *timed.Call) error {
	call := schema.CallID(c.Row.Call)
	if !call.Is(schema.FactCreatesCommunicator) {
		if a.Comm.Number != 0 || a.Comm.Size > 0 {
			if comm, err := r.comm(a.Comm); err == nil { // MPI_Comm_free of a communicator that is not known
				c.Row.Comm = comm.ID
			}
		}
		return nil
	}
	if comm, err := r.comm(a.Comm); err == nil {
		c.Row.Comm = comm.ID
	}
	r.makes(a.NewComm)
	return nil
}

// oneSided fills a row of one-sided communication.
func (r *Rank) oneSided(a *Args, c *timed.Call) error {
	row, call := &c.Row, schema.CallID(c.Row.Call)
	if call.Is(schema.FactCreatesWindow) {
		comm, err := r.comm(a.Comm)
		if err != nil {
			return err
		}
		r.numbers++
		r.windows[a.Window] = window{r.numbers, comm}
	}
	w, ok := r.windows[a.Window]
	if !ok {
		return fmt.Errorf("window %d was not made", a.Window)
	}
	c.Window, row.Comm = w.number, w.comm.ID
	send, recv := schema.Sides(call)
	if !send && !recv {
		return nil
	}
	row.ProcNull = 0
	if a.Target == ProcNull {
		noTarget(row, send, recv)
		return nil
	}
	world, ok := w.comm.Peer(r.me, a.Target)
	if !ok {
		return fmt.Errorf("the target, rank %d, is no rank of the window's %d", a.Target, len(w.comm.PeerRanks(r.me)))
	}
	if send {
		row.SendPeer, row.SendWorld, row.SendBytes = int32(a.Target), world, a.Send
	}
	if recv {
		row.RecvPeer, row.RecvWorld, row.RecvBytes = int32(a.Target), world, a.Recv
	}
	return nil
}

func noTarget(row *schema.Event, send, recv bool) {
	if send {
		row.ProcNull, row.SendBytes = row.ProcNull|schema.ProcNullSend, 0
	}
	if recv {
		row.ProcNull, row.RecvBytes = row.ProcNull|schema.ProcNullRecv, 0
	}
}

// transfer fills a row of I/O.
func (r *Rank) transfer(a *Args, c *timed.Call) error {
	row, call := &c.Row, schema.CallID(c.Row.Call)
	if call.Is(schema.FactOpensFile) {
		comm, err := r.comm(a.Comm)
		if err != nil {
			return err
		}
		r.numbers++
		r.files[a.File] = window{r.numbers, comm}
	}
	if a.Name != "" {
		row.Label = a.Name
	}
	if call == schema.CallFileDelete {
		return nil
	}
	f, ok := r.files[a.File]
	if !ok {
		return fmt.Errorf("file %d was not opened", a.File)
	}
	c.Handle, row.Comm = f.number, f.comm.ID
	send, recv := schema.Sides(call)
	if send {
		row.SendBytes = a.Send
	}
	if recv {
		row.RecvBytes = a.Recv
	}
	return nil
}
