package report

import (
	"context"
	"slices"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/stored"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Detect detects the collectives that a run does by hand, and reports them.
func Detect(ctx context.Context, d *stored.Detection) (*Report, error) {
	result, err := d.Detect(ctx)
	if err != nil {
		return nil, err
	}
	return New(ctx, d.Run, result)
}

// New makes the report of a detection in a run; it reads where in the source the findings' call sites are.
func New(ctx context.Context, r *run.Run, result *detect.Result) (*Report, error) {
	k := &maker{sites: map[int32]Site{}, comms: map[int32]*run.Comm{}, types: map[int32]*schema.Datatype{},
		ranks: r.Manifest.Ranks}
	for i := range r.Comms {
		k.comms[r.Comms[i].ID] = &r.Comms[i]
	}
	for i := range r.Datatypes {
		k.types[r.Datatypes[i].ID] = &r.Datatypes[i]
	}
	for id, calls := range result.Calls {
		var site Site
		for _, call := range calls {
			site.Calls = append(site.Calls, call.String())
		}
		slices.Sort(site.Calls)
		k.sites[id] = site
	}
	if len(k.sites) > 0 {
		if err := r.Callsites(ctx, k.locate); err != nil {
			return nil, err
		}
	}
	return k.report(r.Name, r.Manifest, result), nil
}

// locate adds the places of call sites.
func (k *maker) locate(t *schema.Callsites) error {
	for i, id := range t.ID {
		s, wanted := k.sites[id]
		if !wanted {
			continue
		}
		s.Place = run.Place(t, i)
		if t.Function[i] != schema.NullText {
			s.Function = t.Function[i]
		}
		if t.File[i] != schema.NullText && t.Line[i] != schema.NullInt32 {
			s.File, s.Line = t.File[i], t.Line[i]
		}
		k.sites[id] = s
	}
	return nil
}
