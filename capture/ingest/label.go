package ingest

import (
	"strconv"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// Levels of MPI_Pcontrol that switch recording; from 2 on they mark phases.
const (
	levelOff = 0
	levelOn  = 1
)

// control makes the row of MPI_Pcontrol. Recording is a matter of the process: what its other threads do is left out too.
func (d *decoder) control(c *spool.Call, r *schema.Event) {
	switch c.Count {
	case levelOff:
		r.Label = "off"
	case levelOn:
		r.Label = "on"
		d.off = false
	default:
		if r.Label == schema.NullText {
			r.Label = strconv.FormatInt(c.Count, 10)
		}
	}
	d.put()
	if c.Count == levelOff {
		d.off = true
	}
}
