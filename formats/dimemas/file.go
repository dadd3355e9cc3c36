package dimemas

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// IsTrace reports whether a file that begins with these bytes is a trace of Dimemas.
func IsTrace(head []byte) bool { return strings.HasPrefix(string(head), "#DIMEMAS") }

// ImportFile imports the trace in a file, as Import does, as the run of this name in a store. Without a name the run
// gets that of the file, without .dim.
func ImportFile(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file; the trace is read several times: write it to a file first",
			path)
	}
	if name == "" {
		name = writer.NameFor(strings.TrimSuffix(filepath.Base(path), ".dim"))
	}
	out, err := writer.Create(store, name, writer.Options{Replace: o.Replace})
	if err != nil {
		return nil, err
	}
	o.Name = path
	return Import(ctx, f, info.Size(), out, o)
}
