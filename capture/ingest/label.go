package ingest

import (
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// label is the text that the group's call carries, as it can stand in a table; schema.NullText where there is none.
func (g *group) label() string {
	text := schema.NullText
	_ = g.definitions(func(d *spool.Def, data []byte) error { // what is wrong with them was said before
		if d.What == spool.DefLabel {
			text = validText(string(data))
		}
		return nil
	})
	return text
}
