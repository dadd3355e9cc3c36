package models

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/commq/commq/internal/bounded"
)

// Load reads a machine from the file with this path, in YAML or as a configuration of Dimemas, or returns the
// built-in machine with this name.
func Load(pathOrName string) (*Machine, error) {
	f, err := os.Open(pathOrName)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(pathOrName, "/.") {
		return Named(pathOrName)
	}
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w; the machines with a name are %s", pathOrName, err,
			strings.Join(Names(), ", "))
	}
	defer f.Close()
	r := bufio.NewReader(f)
	start, _ := r.Peek(r.Size()) // an error comes again in the next read
	if !IsCFG(start) {
		return Read(pathOrName, r)
	}
	return ReadCFG(pathOrName, r, func(name string) (io.ReadCloser, error) { return openBeside(pathOrName, name) })
}

// openBeside opens a file that another file names: in the other file's folder, else in the working directory, as
// Dimemas does. The other file may be a stranger's, and errors show lines of what it names: no file outside these two
// folders is opened.
func openBeside(other, name string) (*os.File, error) {
	dir := filepath.Dir(other)
	tries := []string{name}
	if !filepath.IsAbs(name) {
		tries = []string{filepath.Join(dir, name), name}
	}
	var first error
	for _, try := range tries {
		if !bounded.IsInside(dir, try) && !bounded.IsInside(".", try) {
			first = cmp.Or(first, fmt.Errorf("%s is outside the folder of the configuration, and of the one you are in; "+
				"no other files are read: copy it beside the configuration", shown(name)))
			continue
		}
		f, _, err := bounded.OpenRegular(try)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// ParseMapping sets which node of the machine each rank is on, from the value of --mapping: block, cyclic, or a file
// with the number of a node per line, rank by rank. "" leaves the machine as it is.
func ParseMapping(m *Machine, value string) error {
	switch value {
	case "":
		return nil
	case "block":
		m.Mapping = Block
		return nil
	case "cyclic":
		if m.Nodes == 0 {
			return errors.New("--mapping cyclic: the machine has any number of nodes; set one with --set nodes=N")
		}
		m.Mapping = RoundRobin
		return nil
	}
	f, err := os.Open(value)
	if err != nil {
		return fmt.Errorf("--mapping: %w; want block, cyclic or a file", err)
	}
	defer f.Close()
	nodes, err := readNodes(f)
	if err != nil {
		return fmt.Errorf("--mapping %s:%w", value, err)
	}
	m.Mapping, m.NodeOf = Listed, nodes
	return nil
}

// readNodes reads the number of a node per line; # begins a comment. Errors begin with the number of the line.
func readNodes(r io.Reader) (nodes []int, err error) {
	in := bufio.NewScanner(r)
	for line := 1; in.Scan(); line++ {
		text, _, _ := strings.Cut(in.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		node, err := strconv.Atoi(text)
		if err != nil || node < 0 {
			return nil, fmt.Errorf("%d: %q is not the number of a node; want a number from 0 in each line, one line "+
				"per rank", line, text)
		}
		nodes = append(nodes, node)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf(" %w", err)
	}
	return nodes, nil
}
