package run

import (
	"context"
	"fmt"
	"sync"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// callsites holds the frames of call sites, read on first use.
type callsites struct {
	once   sync.Once
	frames []Frame // by id
}

// Frame is a call in the program: an MPI call, or one that led to it.
type Frame struct {
	// Place is where the call is: "solver.f:12", else the function, else module and offset; "" if nothing is known.
	Place string
	// Function is the function that makes the call; "" if it is not known.
	Function string
	// Parent is the id of the frame that called the function; null for the outermost one that was recorded.
	Parent int32
}

// Place returns a function that describes the place of a call site: "solver.f:12", else the function, else module and
// offset; "" if nothing is known of it. The table is read at the first call; a table that cannot be read has no
// places.
func (r *Run) Place(ctx context.Context) func(id int32) string {
	return func(id int32) string {
		frames := r.Frames(ctx)
		if id < 0 || int(id) >= len(frames) {
			return ""
		}
		return frames[id].Place
	}
}

// Frames returns the frames of the run's call sites, by id. A table that cannot be read has none.
func (r *Run) Frames(ctx context.Context) []Frame {
	r.sites.once.Do(func() { r.sites.frames = readFrames(ctx, r.Opened()) })
	return r.sites.frames
}

func readFrames(ctx context.Context, from writer.Opened) (frames []Frame) {
	// Places only make answers and errors easier to read, so an error is ignored.
	_ = from.ReadTable(ctx, &schema.CallsitesTable, smallRows, func(b schema.Batch) error {
		t := b.(*schema.Callsites)
		for i := range t.ID {
			f := Frame{Place: Place(t, i), Parent: t.Parent[i]}
			if t.Function[i] != schema.NullText {
				f.Function = t.Function[i]
			}
			frames = append(frames, f)
		}
		return nil
	})
	return frames
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
