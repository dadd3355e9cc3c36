package queries_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
)

// A message without a payload needs no hash.
func TestCountMessages(t *testing.T) {
	store := t.TempDir()
	const hashes = `
messages src dst comm tag bytes send_seq recv_post_seq recv_done_seq payload_hash
1 3 0 8 17 4 8 8 77
3 1 0 9 4097 5 1 1 -
3 1 0 9 4097 6 2 2 78
3 3 0 7 0 9 10 11 -
`
	db := open(t, newRunIn(t, store, "some.5", world+hashes, example.Manifest(5)),
		newRunIn(t, store, "none.5", world+pingpong, example.Manifest(5)))
	got := map[string]string{}
	err := queries.CountMessages(context.Background(), db, func(run string, messages, unhashed int64) {
		got[run] = fmt.Sprintf("%d of %d", unhashed, messages)
	})
	if want := map[string]string{"some.5": "1 of 4", "none.5": "4 of 5"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
