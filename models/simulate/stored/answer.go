package stored

import (
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
)

// Answer is the answer of commq simulate.
type Answer struct {
	// Run is the name of the run.
	Run string `json:"run"`
	// Machine is the name of the machine.
	Machine string `json:"machine"`
	// Dialect is the dialect of the simulation: paper or dimemas5.
	Dialect string `json:"dialect"`
	// Nodes is the number of nodes.
	Nodes int `json:"nodes"`
	// PredictedNs is the time of the program on the machine.
	PredictedNs int64 `json:"predicted_ns"`
	// Untimed means that the run was captured without compute times, so that computing takes no time here.
	Untimed bool `json:"untimed,omitempty"`
	// ParallelEfficiency is the product of the other three.
	ParallelEfficiency *float64 `json:"parallel_efficiency,omitempty"`
	// LoadBalance is the mean compute time of ranks as a fraction of the longest.
	LoadBalance *float64 `json:"load_balance,omitempty"`
	// Serialisation is the fraction of the time on an ideal network in which the busiest rank computes.
	Serialisation *float64 `json:"serialisation,omitempty"`
	// Transfer is IdealNs as a fraction of PredictedNs.
	Transfer *float64 `json:"transfer,omitempty"`
	// IdealNs is the time on an ideal network, without latency and with infinite bandwidth.
	IdealNs *int64 `json:"ideal_ns,omitempty"`

	// Messages is the number of point-to-point messages.
	Messages int64 `json:"messages"`
	// MessageBytes is their payload.
	MessageBytes int64 `json:"message_bytes"`
	// Collectives is the number of collective operations.
	Collectives int64 `json:"collectives"`
	// CollectiveBytes is what their ranks send.
	CollectiveBytes int64 `json:"collective_bytes"`
	// FallbackCollectives is the number of collective operations that cost what another operation does, as the machine
	// has no model of them.
	FallbackCollectives int64 `json:"fallback_collectives"`
	// FallbackCollectiveBytes is what their ranks send.
	FallbackCollectiveBytes int64 `json:"fallback_collective_bytes"`
	// ObjectOperations is the number of operations of all ranks of a communicator that make communicators, windows or
	// files, and of fences; they cost what another operation does.
	ObjectOperations int64 `json:"object_operations,omitempty"`
	// NCCL has the algorithms and protocols of collectives on a machine of GPUs; nil where no collective has any.
	NCCL []PredictedNCCL `json:"nccl,omitempty"`

	// Ranks tell how each rank spends its time.
	Ranks []PredictedRank `json:"ranks"`

	// CriticalPath has the path by call site, call and rank; nil without --critical-path.
	CriticalPath []critical.PathPart `json:"critical_path,omitempty"`
}

// PredictedNCCL is a way in which NCCL does collectives.
type PredictedNCCL struct {
	// Algorithm is ring, tree, NVLS, NVLS tree, PAT, or sends and receives.
	Algorithm string `json:"algorithm"`
	// Protocol is LL, LL128 or Simple.
	Protocol string `json:"protocol"`
	// Collectives is the number of collective operations that it does so.
	Collectives int64 `json:"collectives"`
}

// PredictedRank tells how a rank spends its time.
type PredictedRank struct {
	// Rank is a rank of MPI_COMM_WORLD.
	Rank int `json:"rank"`
	// FinishNs is when the rank ends.
	FinishNs int64 `json:"finish_ns"`
	// ComputeNs is the time that it computes.
	ComputeNs int64 `json:"compute_ns"`
	// IONs is the time that it reads and writes files by MPI.
	IONs int64 `json:"io_ns"`
	// PointToPointNs is the time in point-to-point calls.
	PointToPointNs int64 `json:"point_to_point_ns"`
	// CollectiveNs is the time in collective calls.
	CollectiveNs int64 `json:"collective_ns"`
	// WaitingNs is the part of both times in which it waits for other ranks.
	WaitingNs int64 `json:"waiting_ns"`
	// CPUWaitNs is the time that it waits for a CPU.
	CPUWaitNs int64 `json:"cpu_wait_ns"`
}

// Answer returns the answer, but for the critical path.
func (s *Simulation) Answer(p *Prediction) *Answer {
	ns, r := simulate.Nanoseconds, p.Result
	a := &Answer{Run: s.Run.Name, Machine: s.Target.Machine.Name, Dialect: s.Target.Dialect.String(),
		Nodes: r.Nodes, PredictedNs: ns(r.Time), Untimed: s.Untimed(),
		Messages: r.Messages, MessageBytes: r.Bytes, Collectives: r.Collectives, CollectiveBytes: r.CollectiveBytes,
		FallbackCollectives: r.FallbackCollectives, FallbackCollectiveBytes: r.FallbackCollectiveBytes,
		ObjectOperations: r.ObjectOperations}
	for _, n := range r.NCCL {
		a.NCCL = append(a.NCCL, PredictedNCCL{n.Algorithm.String(), n.Protocol.String(), n.Collectives})
	}
	for rank, t := range r.Ranks {
		a.Ranks = append(a.Ranks, PredictedRank{rank, ns(t.Finish), ns(t.Compute), ns(t.IO), ns(t.PointToPoint),
			ns(t.Collective), ns(t.Waiting), ns(t.CPUWait)})
	}
	if p.Ideal != nil {
		a.split(r, p.Ideal)
	}
	return a
}

// split adds the factors of the efficiency, unless the program takes no time.
func (a *Answer) split(r, ideal *simulate.Result) {
	e := simulate.NewEfficiency(r, ideal)
	if e == nil {
		return
	}
	ns := simulate.Nanoseconds(ideal.Time)
	a.ParallelEfficiency, a.LoadBalance, a.Serialisation, a.Transfer, a.IdealNs = &e.Parallel, &e.LoadBalance,
		&e.Serialisation, &e.Transfer, &ns
}
