package diskfail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/commq/commq/internal/disk"
)

// node is a file or folder, as the program sees it and as far as it is durable.
type node struct {
	folder bool
	live   map[string]*node // entries of a folder
	saved  map[string]*node // those that are durable

	data    []byte  // contents of a file that are durable
	written []patch // what was written since
}

// patch is a change of a file that is not durable.
type patch struct {
	at   int64
	data []byte
	cut  bool // truncated to at bytes
}

// change sets an entry of a folder; a nil node removes it.
type change struct {
	folder *node
	name   string
	to     *node
}

// tree follows the files below a folder.
type tree struct {
	path    string
	root    *node
	pending [][]change // operations on names that are not durable, in order. Each happens wholly or not at all
}

func newTree(path string) (*tree, error) {
	root, err := readNode(path)
	return &tree{path: path, root: root}, err
}

// readNode reads what is there: all of it is durable.
func readNode(path string) (*node, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		data, err := os.ReadFile(path)
		return &node{data: data}, err
	}
	n := newFolder()
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		child, err := readNode(filepath.Join(path, e.Name()))
		if err != nil {
			return nil, err
		}
		n.live[e.Name()], n.saved[e.Name()] = child, child
	}
	return n, nil
}

func newFolder() *node {
	return &node{folder: true, live: map[string]*node{}, saved: map[string]*node{}}
}

// find returns the folder that a path is in, the last name of it, and what has that name; nil if nothing has.
func (t *tree) find(path string) (folder *node, name string, n *node, err error) {
	rest, err := filepath.Rel(t.path, path)
	if err != nil || rest == ".." || strings.HasPrefix(rest, "../") {
		return nil, "", nil, fmt.Errorf("diskfail: %s is not below %s", path, t.path)
	}
	if rest == "." {
		return nil, "", t.root, nil
	}
	folder = t.root
	parts := strings.Split(rest, "/")
	for _, p := range parts[:len(parts)-1] {
		if folder = folder.live[p]; folder == nil || !folder.folder {
			return nil, "", nil, fmt.Errorf("diskfail: %s: %w", path, fs.ErrNotExist)
		}
	}
	name = parts[len(parts)-1]
	return folder, name, folder.live[name], nil
}

// apply notes an operation that was done.
func (t *tree) apply(op *disk.Op) error {
	folder, name, n, err := t.find(op.Path)
	if err != nil {
		return err
	}
	switch op.Kind {
	case disk.OpClose:
		return nil
	case disk.OpCreate:
		if n == nil {
			t.set(change{folder, name, &node{}})
		} else if op.Truncate {
			n.written = append(n.written, patch{cut: true})
		}
		return nil
	case disk.OpMkdir:
		t.set(change{folder, name, newFolder()})
		return nil
	}
	if n == nil {
		return errors.New("diskfail: " + string(op.Kind) + " of an unknown file " + op.Path)
	}
	switch op.Kind {
	case disk.OpWrite:
		n.written = append(n.written, patch{at: op.Offset, data: append([]byte(nil), op.Data...)})
	case disk.OpTruncate:
		n.written = append(n.written, patch{at: op.Offset, cut: true})
	case disk.OpSync:
		n.data, n.written = n.contents(func(patch) bool { return true }), nil
	case disk.OpSyncDir:
		t.syncFolder(n)
	case disk.OpRemove:
		t.set(change{folder, name, nil})
	default:
		return t.move(op, change{folder, name, n})
	}
	return nil
}

// move notes an operation with two names.
func (t *tree) move(op *disk.Op, from change) error {
	folder, name, there, err := t.find(op.To)
	if err != nil {
		return err
	}
	switch op.Kind {
	case disk.OpRename:
		t.set(change{from.folder, from.name, nil}, change{folder, name, from.to})
	case disk.OpExchange:
		t.set(change{from.folder, from.name, there}, change{folder, name, from.to})
	case disk.OpLink:
		t.set(change{folder, name, from.to})
	}
	return nil
}

// set changes entries, in one step that is not durable yet.
func (t *tree) set(changes ...change) {
	for _, c := range changes {
		put(c.folder.live, c.name, c.to)
	}
	t.pending = append(t.pending, changes)
}

func put(entries map[string]*node, name string, n *node) {
	if n == nil {
		delete(entries, name)
	} else {
		entries[name] = n
	}
}

// syncFolder makes the changes of a folder durable, and the other changes of the same operations with them.
func (t *tree) syncFolder(n *node) {
	var rest [][]change
	for _, op := range t.pending {
		here := false
		for _, c := range op {
			here = here || c.folder == n
		}
		if !here {
			rest = append(rest, op)
			continue
		}
		for _, c := range op {
			put(c.folder.saved, c.name, c.to)
			rest = forget(rest, c)
		}
	}
	t.pending = rest
}

// forget removes changes of an entry that a durable one has overtaken.
func forget(pending [][]change, done change) (rest [][]change) {
	for _, op := range pending {
		var left []change
		for _, c := range op {
			if c.folder != done.folder || c.name != done.name {
				left = append(left, c)
			}
		}
		if len(left) > 0 {
			rest = append(rest, left)
		}
	}
	return rest
}

// contents returns a file with those patches that keep chooses.
func (n *node) contents(keep func(patch) bool) []byte {
	data := append([]byte(nil), n.data...)
	for _, p := range n.written {
		switch {
		case !keep(p):
		case p.cut:
			data = resized(data, p.at)
		default:
			if end := p.at + int64(len(p.data)); end > int64(len(data)) {
				data = resized(data, end)
			}
			copy(data[p.at:], p.data)
		}
	}
	return data
}

func resized(data []byte, size int64) []byte {
	if size <= int64(len(data)) {
		return data[:size]
	}
	return append(data, make([]byte, size-int64(len(data)))...)
}
