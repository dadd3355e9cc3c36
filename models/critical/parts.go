package critical

import (
	"fmt"
	"math"
	"strings"

	"github.com/commq/commq/internal/units"
)

// PathPart is the part of a critical path that one call of one rank has.
type PathPart struct {
	// Callsite is the place of the call in the program; nil if it is not known.
	Callsite *string `json:"callsite"`
	// Call is the MPI function that the time was spent in, or before.
	Call string `json:"call"`
	// Rank is the rank that the path leads through.
	Rank int32 `json:"rank"`
	// PathNs is the time of the path, the sum of the five times below.
	PathNs int64 `json:"path_ns"`
	// Share is PathNs as a fraction of the path's length.
	Share float64 `json:"share"`
	// ComputeNs is the time of computing before the calls.
	ComputeNs int64 `json:"compute_ns"`
	// PointToPointNs is the time inside point-to-point calls.
	PointToPointNs int64 `json:"point_to_point_ns"`
	// TransferNs is the time after the other side of a message was ready.
	TransferNs int64 `json:"transfer_ns"`
	// CollectiveNs is the time inside collective calls.
	CollectiveNs int64 `json:"collective_ns"`
	// OtherNs is the time inside other calls.
	OtherNs int64 `json:"other_ns"`
	// Pieces is the number of pieces of the path.
	Pieces int64 `json:"pieces"`
}

// Parts groups the path by some keys, as GroupBy does.
func (p *Path) Parts(keys []Key, place func(site int32) string) (all []PathPart) {
	for _, g := range p.GroupBy(keys, place) {
		part := PathPart{Call: g.Call, Rank: g.Rank, PathNs: g.TotalNs(),
			Share:     math.Round(float64(g.TotalNs())/float64(p.DurationNs)*1e6) / 1e6,
			ComputeNs: g.Ns[Compute], PointToPointNs: g.Ns[PointToPoint], TransferNs: g.Ns[Transfer],
			CollectiveNs: g.Ns[Collective], OtherNs: g.Ns[Other], Pieces: g.Pieces}
		if g.Callsite != "" {
			part.Callsite = &g.Callsite
		}
		all = append(all, part)
	}
	return all
}

// Shares lists the kinds of the path's time: "61 % compute, 39 % transfer".
func (p *Path) Shares() string {
	sum := p.Sum()
	var text []string
	for k := range Kinds {
		if ns := sum.Ns[k]; ns > 0 {
			text = append(text, fmt.Sprintf("%s %s", units.Percent(float64(ns)/float64(p.DurationNs)), k))
		}
	}
	return strings.Join(text, ", ")
}
