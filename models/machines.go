package models

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/commq/commq/internal/nearest"
)

//go:embed machines/*.yaml
var machines embed.FS

// Names returns the names of the built-in machines, sorted.
func Names() []string {
	files, err := fs.Glob(machines, "machines/*.yaml")
	if err != nil {
		panic(err) // only a malformed pattern is an error
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(f, "machines/"), ".yaml")
	}
	return files
}

// Named returns a built-in machine.
func Named(name string) (*Machine, error) {
	data, err := machines.ReadFile("machines/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("unknown machine %q%s", name,
			nearest.HintOr(name, Names(), "there are "+strings.Join(Names(), ", ")))
	}
	return Read(name, bytes.NewReader(data))
}
