package dumpi

import (
	"fmt"
	"strings"

	"github.com/commq/commq/formats/calls"
	"github.com/commq/commq/schema"
)

// DUMPI's numbers of predefined communicators, groups and requests.
const (
	commNull, commWorld, commSelf = 1, 2, 3
	requestNull                   = 1
)

// decoder turns the records of a rank into calls with arguments.
type decoder struct {
	*types
}

// arguments fills in the arguments of a record's call.
func (d *decoder) arguments(x *record, a *calls.Args) (err error) {
	a.Reset()
	a.Call, a.Thread, a.StartNs, a.EndNs = x.call(), x.thread, x.start, x.end
	v := &x.values
	a.Comm, a.NewComm = calls.Named(v[fComm]), calls.Named(calls.Unshown)
	a.MakesGroup = groupMakers[functions[x.function].name]
	if a.MakesGroup != calls.NoGroup {
		group(x, a)
		return nil
	}
	switch class := schema.Calls[a.Call].Class; {
	case a.Call.Is(schema.FactCreatesCommunicator):
		constructor(x, a)
	case class == schema.ClassSendrecv:
		err = d.sendrecv(x, a)
	case a.Call.Is(schema.FactPointToPoint):
		err = d.message(x, a)
	case a.Call.Is(schema.FactStarts):
		starts(x, a)
	case class == schema.ClassComplete:
		err = completes(x, a)
	case class == schema.ClassCollective:
		err = d.collective(x, a)
	case class == schema.ClassRMA:
		err = d.oneSided(x, a)
	case class == schema.ClassIO:
		err = d.transfer(x, a)
	}
	return err
}

// peer translates the number of a rank: of all libraries, negative ones other than DUMPI's own stand for
// MPI_PROC_NULL.
func peer(rank int64, source bool) int64 {
	switch {
	case rank >= 0:
		return rank
	case rank == -1 && source:
		return calls.AnySource
	}
	return calls.ProcNull
}

// status returns the first status of a record, nil if it has none.
func (x *record) status() *calls.Status {
	if len(x.statuses) == 0 {
		return nil
	}
	s := x.statuses[0]
	return &s
}

// message fills in the arguments of sends, receives and probes, and of calls that make persistent requests.
func (d *decoder) message(x *record, a *calls.Args) error {
	v := &x.values
	a.Request = request(v[fRequest])
	if a.Call.Is(schema.FactProbes) {
		a.Source, a.RecvTag, a.Status = peer(v[fSource], true), v[fTag], x.status()
		a.Failed = a.Call.Is(schema.FactTests) && v[fFlag] == 0
		if a.Failed {
			a.Status = nil
		}
		return nil
	}
	bytes, err := d.scaled(v[fCount], v[fDatatype])
	if a.Call.Is(schema.FactSends) {
		a.Dest, a.SendTag, a.Send = peer(v[fDest], false), v[fTag], bytes
	} else {
		a.Source, a.RecvTag, a.Recv = peer(v[fSource], true), v[fTag], bytes
		if a.Call.Is(schema.FactBlocking) {
			a.Status = x.status()
		}
	}
	return err
}

func (d *decoder) sendrecv(x *record, a *calls.Args) (err error) {
	v := &x.values
	a.Dest, a.SendTag, a.Source, a.RecvTag = peer(v[fDest], false), v[fSendtag], peer(v[fSource], true), v[fRecvtag]
	a.Status = x.status()
	if functions[x.function].name == "MPI_Sendrecv_replace" {
		a.Send, err = d.scaled(v[fCount], v[fDatatype])
		a.Recv = a.Send
		return err
	}
	if a.Send, err = d.scaled(v[fSendcount], v[fSendtype]); err != nil {
		return err
	}
	a.Recv, err = d.scaled(v[fRecvcount], v[fRecvtype])
	return err
}

// request returns the key of a request.
func request(number int64) uint64 { return uint64(uint32(number)) }

// completes fills in which requests a call completed.
func completes(x *record, a *calls.Args) error {
	v, all := &x.values, x.arrays[fRequests]
	space, name, _ := strings.Cut(functions[x.function].name, "_")
	if space != "MPI" {
		return nil // MPIO_Wait and others for requests of I/O, which have numbers of their own
	}
	end := func(number int64, status int) {
		if number == requestNull {
			return
		}
		e := calls.End{Request: request(number)}
		if status < len(x.statuses) {
			s := x.statuses[status]
			e.Status = &s
		}
		a.Ends = append(a.Ends, e)
	}
	a.Failed = a.Call.Is(schema.FactTests) && v[fFlag] == 0
	switch name {
	case "Wait", "Test":
		if !a.Failed {
			end(v[fRequest], 0)
		}
	case "Request_free":
		a.Ends = append(a.Ends, calls.End{Request: request(v[fRequest]), Freed: true})
	case "Waitall", "Testall":
		for i, number := range all {
			if !a.Failed {
				end(number, i)
			}
		}
	case "Waitany", "Testany":
		if i := v[fIndex]; !a.Failed && i >= 0 && i < int64(len(all)) {
			end(all[i], 0)
		}
	case "Waitsome", "Testsome":
		a.Failed = name == "Testsome" && len(x.arrays[fIndices]) == 0
		for k, i := range x.arrays[fIndices] {
			if i < 0 || i >= int64(len(all)) {
				return fmt.Errorf("request %d of %d was completed", i, len(all))
			}
			end(all[i], k)
		}
	}
	return nil
}

func starts(x *record, a *calls.Args) {
	a.Request = request(x.values[fRequest])
	for _, number := range x.arrays[fRequests] {
		a.Requests = append(a.Requests, request(number))
	}
}

// collective fills in the arguments of a collective operation.
func (d *decoder) collective(x *record, a *calls.Args) (err error) {
	v := &x.values
	a.Root = rootOf(v[fRoot])
	if a.Call.Is(schema.FactReduces) {
		a.Op = operation(v[fOp])
	}
	atRoot := v[fRoot] == v[fCommrank]
	set := func(to *int64, count, datatype field) {
		if err == nil {
			*to, err = d.scaled(v[count], v[datatype])
		}
	}
	spread := func(to *[]int64, counts field, datatypes ...int64) {
		if err == nil && len(datatypes) > 0 {
			*to, err = d.all(x.arrays[counts], datatypes...)
		}
	}
	switch a.Call {
	case schema.CallBarrier:
	case schema.CallBcast, schema.CallReduce, schema.CallAllreduce, schema.CallScan, schema.CallExscan:
		set(&a.Send, fCount, fDatatype)
		a.Recv = a.Send
	case schema.CallReduceScatter:
		spread(&a.To, fRecvcounts, v[fDatatype])
	case schema.CallGather:
		set(&a.Send, fSendcount, fSendtype)
		if atRoot {
			set(&a.Recv, fRecvcount, fRecvtype)
		}
	case schema.CallScatter:
		set(&a.Recv, fRecvcount, fRecvtype)
		if atRoot {
			set(&a.Send, fSendcount, fSendtype)
		}
	case schema.CallAllgather, schema.CallAlltoall:
		set(&a.Send, fSendcount, fSendtype)
		set(&a.Recv, fRecvcount, fRecvtype)
	case schema.CallGatherv:
		set(&a.Send, fSendcount, fSendtype)
		if atRoot {
			spread(&a.From, fRecvcounts, v[fRecvtype])
		}
	case schema.CallScatterv:
		set(&a.Recv, fRecvcount, fRecvtype)
		if atRoot {
			spread(&a.To, fSendcounts, v[fSendtype])
		}
	case schema.CallAllgatherv:
		set(&a.Send, fSendcount, fSendtype)
		spread(&a.From, fRecvcounts, v[fRecvtype])
	case schema.CallAlltoallv:
		spread(&a.To, fSendcounts, v[fSendtype])
		spread(&a.From, fRecvcounts, v[fRecvtype])
	case schema.CallAlltoallw:
		spread(&a.To, fSendcounts, x.arrays[fSendtypes]...)
		spread(&a.From, fRecvcounts, x.arrays[fRecvtypes]...)
	}
	return err
}

// rootOf translates the root of a collective operation.
func rootOf(rank int64) int64 {
	switch {
	case rank >= 0:
		return rank
	case rank == -2:
		return calls.Root
	}
	return calls.ProcNull
}

// oneSided fills in the arguments of a call on a window.
func (d *decoder) oneSided(x *record, a *calls.Args) (err error) {
	v := &x.values
	a.Window, a.Target = v[fWin], peer(v[fTargetrank], false)
	a.Failed = a.Call.Is(schema.FactTests) && v[fFlag] == 0
	if send, recv := schema.Sides(a.Call); send || recv {
		bytes, err := d.scaled(v[fOrigincount], v[fOrigintype])
		a.Send, a.Recv = bytes, bytes
		if a.Call == schema.CallAccumulate {
			a.Op = operation(v[fOp])
		}
		return err
	}
	return nil
}

// transfer fills in the arguments of a call on a file.
func (d *decoder) transfer(x *record, a *calls.Args) (err error) {
	v := &x.values
	a.File = v[fFile]
	if a.Call == schema.CallFileOpen || a.Call == schema.CallFileDelete {
		a.Name = x.name
	}
	if send, recv := schema.Sides(a.Call); send || recv {
		bytes, err := d.scaled(v[fCount], v[fDatatype])
		a.Send, a.Recv = bytes, bytes
		return err
	}
	return nil
}

// constructor fills in the arguments of a call that makes a communicator.
func constructor(x *record, a *calls.Args) {
	v := &x.values
	a.Comm, a.NewComm = calls.Named(v[fOldcomm]), calls.Named(v[fNewcomm])
	switch a.Call {
	case schema.CallIntercommCreate:
		a.Comm, a.PeerComm = calls.Named(v[fLocalcomm]), calls.Named(v[fRemotecomm])
		a.Leader, a.RemoteLeader = v[fLocalleader], v[fRemoteleader]
	case schema.CallIntercommMerge:
		a.Comm, a.High = calls.Named(v[fComm]), v[fHigh] != 0
	case schema.CallCommSplit:
		a.Color, a.Key = v[fColor], v[fKey]
	case schema.CallCommCreate:
		a.Group = v[fGroup]
	case schema.CallCartCreate:
		a.Dims, a.Periods = x.arrays[fDims], x.arrays[fPeriods]
	case schema.CallCartSub:
		a.Dims = x.arrays[fRemainDims]
	case schema.CallGraphCreate:
		a.Dims = []int64{v[fNodes]}
	}
}

// groupMakers are the functions that make groups.
var groupMakers = map[string]calls.GroupMaker{"MPI_Comm_group": calls.CommGroup,
	"MPI_Comm_remote_group": calls.CommRemoteGroup, "MPI_Group_incl": calls.GroupIncl,
	"MPI_Group_excl": calls.GroupExcl, "MPI_Group_range_incl": calls.GroupIncl,
	"MPI_Group_range_excl": calls.GroupExcl, "MPI_Group_union": calls.GroupUnion,
	"MPI_Group_intersection": calls.GroupIntersection, "MPI_Group_difference": calls.GroupDifference}

// group fills in the arguments of a call that makes a group.
func group(x *record, a *calls.Args) {
	v := &x.values
	a.Group, a.NewGroup = v[fGroup], v[fNewgroup]
	switch a.MakesGroup {
	case calls.CommGroup, calls.CommRemoteGroup:
		a.NewGroup = v[fGroup]
	case calls.GroupUnion, calls.GroupIntersection, calls.GroupDifference:
		a.Group, a.Group2 = v[fGroup1], v[fGroup2]
	default:
		a.Ranks = x.arrays[fRanks]
		if functions[x.function].parts[2].kind == 'J' {
			a.Ranks = nil
			for _, r := range x.ranges {
				if len(r) == 3 {
					a.Ranges = append(a.Ranges, [3]int64(r))
				}
			}
		}
	}
}
