package generate

import (
	"fmt"
	"slices"

	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// totals are the numbers that the members of a communicator send and receive in an operation, by their ranks in it.
type totals struct {
	members    []int32 // world ranks
	send, recv []int64
	sent       int64 // by all members
}

// totalsKey identifies totals.
type totalsKey struct {
	at   callAt
	comm int32
}

// totalsCache keeps totals, and counts the rows of parts that they may give.
type totalsCache struct {
	known map[totalsKey]*totals
	rows  int64
}

// totalsOf evaluates the laws of a site for all members of a row's communicator; nil if there are too many.
func (g *generator) totalsOf(x *model.Site, at callAt, e *schema.Event, index []int32) *totals {
	key := totalsKey{at, e.Comm}
	if t, known := g.totals.known[key]; known {
		return t
	}
	g.totals.known[key] = nil
	t := &totals{members: make([]int32, len(g.comms.ranks[e.Comm]))}
	for world, rank := range g.comms.ranks[e.Comm] {
		t.members[rank] = world
	}
	if g.totals.rows += int64(len(t.members)) * int64(len(t.members)); g.totals.rows > signature.MaxParts {
		if !g.warned["parts"] {
			g.warned["parts"] = true
			g.result.Warnings = append(g.result.Warnings,
				fmt.Sprintf("collectives with a count per peer would have more "+
					"than %d rows in parts; those of some are left out", signature.MaxParts))
		}
		return nil
	}
	evaluate := func(l *law.Law, p *law.Point) int64 {
		v, known := l.Evaluate(p)
		if !known {
			return 0
		}
		return v.Value
	}
	for _, world := range t.members {
		p := law.Point{Ranks: g.ranks, Rank: world, PeerRank: pattern.None, Index: index, Root: e.RootWorld == world}
		send := evaluate(x.Send.Bytes, &p)
		t.send, t.recv = append(t.send, send), append(t.recv, evaluate(x.Recv.Bytes, &p))
		t.sent += send
	}
	g.totals.known[key] = t
	return t
}

// partsOf returns the rows of parts of a row, without rank, seq and epoch; none if they do not add up to its bytes.
func (w *rankWriter) partsOf(x *model.Site, at callAt, e *schema.Event, index []int32) (parts []schema.Part) {
	onlyRoot := x.Parts == signature.PartsRecvRoot || x.Parts == signature.PartsSendRoot
	if x.Parts == signature.NoParts || onlyRoot && e.RootWorld != w.rank || e.Comm < 0 {
		return nil
	}
	t := w.g.totalsOf(x, at, e, index)
	if t == nil {
		return nil
	}
	var send, recv int64
	for i, peer := range t.members {
		row := schema.NullPart
		row.PeerWorld = peer
		sendOK, recvOK := true, true
		switch x.Parts {
		case signature.PartsRecvRoot, signature.PartsRecvAll:
			row.RecvBytes = t.send[i]
		case signature.PartsSendRoot:
			row.SendBytes = t.recv[i]
		case signature.PartsExchange:
			row.SendBytes, sendOK = signature.ProductShare(max(e.SendBytes, 0), t.recv[i], t.sent)
			row.RecvBytes, recvOK = signature.ProductShare(max(e.RecvBytes, 0), t.send[i], t.sent)
		}
		if !sendOK || !recvOK {
			return nil
		}
		if send, recv = send+row.SendBytes, recv+row.RecvBytes; row.SendBytes+row.RecvBytes > 0 {
			parts = append(parts, row)
		}
	}
	slices.SortFunc(parts, func(a, b schema.Part) int { return int(a.PeerWorld) - int(b.PeerWorld) })
	checksSend := x.Parts == signature.PartsSendRoot || x.Parts == signature.PartsExchange
	checksRecv := x.Parts != signature.PartsSendRoot
	if checksSend && send != max(e.SendBytes, 0) || checksRecv && recv != max(e.RecvBytes, 0) {
		return nil
	}
	return parts
}
