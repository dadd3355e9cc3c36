package spread

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// SetAside removes broadcasts that roots send directly from a ledger: they may be parts of alltoalls, in which a rank
// may send the same to all others.
func SetAside(l *ledger.Ledger) (aside []*ledger.Instance) {
	l.Found = slices.DeleteFunc(l.Found, func(i *ledger.Instance) bool {
		if i.Op != ledger.Bcast || !direct(l.Messages, i) || i.Segments > 1 || hasPiece(l.Messages, i) {
			return false
		}
		aside = append(aside, i)
		l.Release(i)
		return true
	})
	return aside
}

// PutBack restores broadcasts set aside whose messages no alltoall has taken.
func PutBack(l *ledger.Ledger, aside []*ledger.Instance) {
	for _, i := range aside {
		if !slices.ContainsFunc(i.Messages, func(m int32) bool { return l.Messages[m].Taken }) {
			l.Take(i)
		}
	}
}

// Exchanges finds direct exchanges of every rank with every other, among messages of one size (kind 0) or of any
// (kind 1).
func Exchanges(r *ledger.Rules, l *ledger.Ledger, kind int) {
	for _, list := range split(l.Messages, ledger.Untaken(l.Messages), func(m *ledger.Message) ledger.Class { return ledger.Classes(m)[kind] }) {
		for _, c := range connected(l.Messages, list) {
			Exchange(r, l, c)
		}
	}
}

// Exchange divides messages of one class on connected ranks into alltoalls, if that uses all of them.
func Exchange(r *ledger.Rules, l *ledger.Ledger, list []int32) {
	n := len(newNumbering(l.Messages, list).ranks)
	if n < r.MinRanks || len(list)%(n*(n-1)) != 0 {
		return
	}
	ways := map[ledger.Way][]int32{}
	for _, m := range list {
		w := ledger.Way{Src: l.Messages[m].Src, Dst: l.Messages[m].Dst}
		if ways[w] = append(ways[w], m); len(ways[w]) > len(list)/(n*(n-1)) {
			return
		}
	}
	if len(ways) != n*(n-1) {
		return
	}
	times := len(list) / len(ways)
	for _, w := range ways {
		if len(w) != times {
			return
		}
		slices.SortFunc(w, func(a, b int32) int { return cmp.Compare(l.Messages[a].SendSeq, l.Messages[b].SendSeq) })
	}
	var found []*ledger.Instance
	ends := map[int32]int64{} // of the last instance, by rank
	for k := range times {
		i := alltoall(l.Messages, ways, k)
		if i.Bytes == 0 || !startsAfter(l.Messages, i, ends) || rotates(l.Messages, i) {
			return
		}
		found = append(found, i)
	}
	for _, i := range found {
		l.Take(i)
	}
}

// alltoall returns the instance made of the k-th message of each way.
func alltoall(messages []ledger.Message, ways map[ledger.Way][]int32, k int) *ledger.Instance {
	i := &ledger.Instance{Op: ledger.Alltoall, Root: schema.NullInt32, Segments: 1}
	sizes := map[int64]bool{}
	sum := map[int32]int64{}
	for w, list := range ways {
		m := &messages[list[k]]
		i.Messages = append(i.Messages, list[k])
		sizes[m.Bytes] = true
		if _, known := sum[w.Src]; !known {
			i.Ranks = append(i.Ranks, w.Src)
		}
		sum[w.Src] += m.Bytes
		i.Bytes = max(i.Bytes, m.Bytes)
	}
	slices.Sort(i.Messages)
	slices.Sort(i.Ranks)
	i.First = messages[i.Messages[0]].SendSeq
	if len(sizes) > 1 {
		i.Op, i.Bytes = ledger.Alltoallv, 0
		for _, s := range sum {
			i.Bytes = max(i.Bytes, s)
		}
		return i
	}
	i.Bytes *= int64(len(i.Ranks) - 1)
	return i
}

// startsAfter reports whether every rank sends its part of the instance after all it sends in the last one, and
// updates ends.
func startsAfter(messages []ledger.Message, i *ledger.Instance, ends map[int32]int64) bool {
	last := map[int32]int64{}
	for _, m := range i.Messages {
		m := &messages[m]
		if end, ok := ends[m.Src]; ok && m.SendSeq <= end {
			return false
		}
		last[m.Src] = max(last[m.Src], m.SendSeq)
	}
	for r, end := range last {
		ends[r] = end
	}
	return true
}

// rotates reports whether an exchange is a loop over roots that scatter or gather one after the other.
func rotates(messages []ledger.Message, i *ledger.Instance) bool {
	firstSend, lastRecv := map[int32]int64{}, map[int32]int64{}
	for _, m := range i.Messages {
		m := &messages[m]
		if s, ok := firstSend[m.Src]; !ok || m.SendSeq < s {
			firstSend[m.Src] = m.SendSeq
		}
		lastRecv[m.Dst] = max(lastRecv[m.Dst], m.DoneSeq)
	}
	scatters, gathers := map[ledger.Way]bool{}, map[ledger.Way]bool{}
	for _, m := range i.Messages {
		m := &messages[m]
		if m.DoneSeq < firstSend[m.Dst] {
			scatters[ledger.Way{Src: m.Src, Dst: m.Dst}] = true
		}
		if m.SendSeq > lastRecv[m.Src] {
			gathers[ledger.Way{Src: m.Src, Dst: m.Dst}] = true
		}
	}
	return isTotalOrder(scatters, len(i.Ranks)) || isTotalOrder(gathers, len(i.Ranks))
}
