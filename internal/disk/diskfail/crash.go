package diskfail

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// pageBytes is how much of a file a disk writes at once; it may write the pages of a file in any order.
const pageBytes = 512

// crash makes the folder that a power failure leaves. Which of the operations that nobody synced have happened is
// chosen: of the names none, all, the first ones, or any; of contents none, all, or any pages.
func (t *tree) crash(to string, choose func(n int) int) error {
	saved := map[*node]map[string]*node{}
	entries := func(n *node) map[string]*node {
		if saved[n] == nil {
			saved[n] = maps.Clone(n.saved)
		}
		return saved[n]
	}
	names := choose(4)
	first := 0
	if len(t.pending) > 0 {
		first = choose(len(t.pending) + 1)
	}
	for i, op := range t.pending {
		if names == 0 || names == 2 && i >= first || names == 3 && choose(2) == 0 {
			continue
		}
		for _, c := range op {
			put(entries(c.folder), c.name, c.to)
		}
	}
	w := crashWriter{entries: entries, contents: choose(3), choose: choose}
	return w.write(t.root, to)
}

type crashWriter struct {
	entries  func(*node) map[string]*node
	contents int // 0: nothing that was not synced, 1: all of it, 2: any pages
	choose   func(n int) int
}

func (w *crashWriter) write(n *node, to string) error {
	if !n.folder {
		return os.WriteFile(to, w.file(n), 0o666)
	}
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	entries := w.entries(n)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err := w.write(entries[name], filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *crashWriter) file(n *node) []byte {
	switch w.contents {
	case 0:
		return n.data
	case 1:
		return n.contents(func(patch) bool { return true })
	}
	paged := *n
	paged.written = nil
	for _, p := range n.written {
		if p.cut {
			paged.written = append(paged.written, p)
			continue
		}
		for at := 0; at < len(p.data); at += pageBytes {
			end := min(at+pageBytes, len(p.data))
			paged.written = append(paged.written, patch{at: p.at + int64(at), data: p.data[at:end]})
		}
	}
	return paged.contents(func(patch) bool { return w.choose(2) == 1 })
}
