package detect

import (
	"slices"

	"github.com/commq/commq/schema"
)

// askShared asks where messages are whose payload comes so often.
func (d *detector) askShared(least int) (err error) {
	if d.run.Shared == nil {
		return nil
	}
	if d.shared, err = d.run.Shared(least); err == nil && d.shared == nil {
		d.shared = map[Stretch]bool{}
	}
	return err
}

// sharedRows is rows for who needs the hashes of payloads only where payloads may come often: looked says whether those of the batch were read. Of one
// whose hashes were not all payloads are known, and none comes often.
func (d *detector) sharedRows(columns []string, visit func(b *schema.Messages, list []int32, looked bool, rest schema.Rest) error) error {
	if d.shared == nil {
		return d.rows(columns, func(b *schema.Messages, list []int32, rest schema.Rest) error { return visit(b, list, true, rest) })
	}
	columns = slices.DeleteFunc(append([]string{"epoch", "src"}, columns...), func(name string) bool { return name == hashColumn })
	var list []int32
	d.result.Messages, d.result.Unhashed = 0, 0
	return d.run.Messages(columns, func(b *schema.Messages, rest schema.Rest) error {
		looked := d.anyShared(b)
		if looked {
			if err := rest(0, b.Len(), hashColumn); err != nil {
				return err
			}
		}
		list = list[:0]
		for i := range b.Src {
			if !looked || hashed(b, i) {
				list = append(list, int32(i))
			}
		}
		d.result.Messages += int64(len(b.Src))
		d.result.Unhashed += int64(len(b.Src) - len(list))
		return visit(b, list, looked, rest)
	})
}

// anyShared says whether a batch has messages whose payload may come often.
func (d *detector) anyShared(b *schema.Messages) bool {
	for i, src := range b.Src {
		if (i == 0 || src != b.Src[i-1] || b.Epoch[i] != b.Epoch[i-1]) && d.shared[Stretch{b.Epoch[i], src}] {
			return true
		}
	}
	return false
}
