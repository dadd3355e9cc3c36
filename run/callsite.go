package run

import (
	"context"
	"fmt"
	"sync"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// callsites holds the places of call sites, read on first use.
type callsites struct {
	once   sync.Once
	places []string // by id
}

// Place returns a function that describes the place of a call site: "solver.f:12", else the function, else module and
// offset; "" if nothing is known of it. The table is read at the first call; a table that cannot be read has no
// places.
func (r *Run) Place(ctx context.Context) func(id int32) string {
	return func(id int32) string {
		r.sites.once.Do(func() { r.sites.places = readPlaces(ctx, r.Dir) })
		if id < 0 || int(id) >= len(r.sites.places) {
			return ""
		}
		return r.sites.places[id]
	}
}

func readPlaces(ctx context.Context, dir string) (places []string) {
	// Places only make answers and errors easier to read, so an error is ignored.
	_ = writer.ReadTable(ctx, dir, &schema.CallsitesTable, smallRows, func(b schema.Batch) error {
		t := b.(*schema.Callsites)
		for i := range t.ID {
			places = append(places, Place(t, i))
		}
		return nil
	})
	return places
}

// Place describes the place of the call site in row i: its file and line, else its function, else its module and
// offset; "" if nothing is known.
func Place(t *schema.Callsites, i int) string {
	switch {
	case t.File[i] != schema.NullText && t.Line[i] != schema.NullInt32:
		return fmt.Sprintf("%s:%d", t.File[i], t.Line[i])
	case t.Function[i] != schema.NullText:
		return t.Function[i]
	case t.Module[i] != schema.NullText:
		return fmt.Sprintf("%s+%#x", t.Module[i], t.Offset[i])
	}
	return ""
}

// SiteText describes a call for people: "MPI_Send in f at solver.f:12". The function is left out where it is all
// that is known of the place, and each part where it is "".
func SiteText(call, function, place string) string {
	text := call
	if function != "" && function != place {
		text += " in " + function
	}
	if place != "" {
		text += " at " + place
	}
	return text
}
