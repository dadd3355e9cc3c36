package models

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed machines/*.yaml
var machines embed.FS

// Names are the machines that commq knows by name, sorted.
func Names() []string {
	files, err := fs.Glob(machines, "machines/*.yaml")
	if err != nil {
		panic(err) // the pattern is right
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(f, "machines/"), ".yaml")
	}
	return files
}

// Named is a machine that commq knows by name.
func Named(name string) (*Machine, error) {
	data, err := machines.ReadFile("machines/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("machine %q: there is no machine of that name; there are %s", name, strings.Join(Names(), ", "))
	}
	return Read(name, bytes.NewReader(data))
}
