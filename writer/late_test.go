package writer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// lateRun writes a run of messages whose columns use every encoding (dictionary, delta, plain) with no, some and only
// nulls. Its row groups have several pages, several batches, and a few rows.
func lateRun(t *testing.T) (dir string) {
	store := filepath.Join(t.TempDir(), "runs")
	r := mustCreate(t, store, "late")
	rng := rand.New(rand.NewPCG(5, 9))
	for epoch, rows := range []int{pageRows + 4321, 3, 5000} {
		b := &schema.Messages{}
		for i := range rows {
			m := schema.NullMessage
			m.Src, m.Dst, m.Epoch, m.Comm, m.Tag = 3, 5, int32(epoch), 0, int32(i/700%3)
			m.Bytes, m.SendSeq, m.PayloadHash = 4097, int64(epoch)<<20+int64(i), int64(rng.Uint64())
			if epoch != 2 {
				m.RecvDoneSeq = m.SendSeq + 2 + int64(i%3)
				m.PayloadHead = int64(rng.IntN(5))
			}
			if rng.IntN(3) > 0 {
				m.PayloadSum = int64(rng.Uint64())
				m.SendCallsite = rng.Int32N(300)
			}
			if i/5000%2 == 0 {
				m.SrcBuffer = rng.Int64N(1 << 40)
				m.RecvPostSeq = m.SendSeq + int64(i%2)
			}
			b.Append(&m)
		}
		if err := r.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Commit(t.Context(), manifestOfMany()); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, "late")
}

var lateColumnNames = []string{"send_seq", "recv_post_seq", "recv_done_seq", "payload_sum", "payload_head",
	"src_buffer", "send_callsite", "dst_buffer", "tag"}

func lateRows(t *testing.T, dir string) *Epochs {
	t.Helper()
	e, err := ReadEpochs(dir, &schema.MessagesTable, 1024,
		append([]string{"src", "epoch", "payload_hash"}, lateColumnNames...)...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// rowsText formats the late columns of each row.
func rowsText(v *schema.Messages) string {
	var s strings.Builder
	for i := range v.Src {
		fmt.Fprintln(&s, v.Epoch[i], v.PayloadHash[i], v.Tag[i], v.SendSeq[i], v.RecvPostSeq[i], v.RecvDoneSeq[i],
			v.PayloadSum[i], v.PayloadHead[i], v.SrcBuffer[i],
			v.DstBuffer[i], v.SendCallsite[i], v.RecvCallsite[i], v.Dst[i])
	}
	return s.String()
}

// Late reads return the same values as All, for any subset of batches and rows.
func TestAllLate(t *testing.T) {
	dir := lateRun(t)
	var want []string
	err := lateRows(t, dir).All(context.Background(), func(b schema.Batch) error {
		want = append(want, rowsText(b.(*schema.Messages)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range []int{1, 2, 7, 1 << 30} {
		rng := rand.New(rand.NewPCG(uint64(share), 9))
		at, asked := 0, 0
		err := lateRows(t, dir).AllLate(context.Background(), lateColumnNames,
			func(b schema.Batch, rest schema.Rest) error {
				v := b.(*schema.Messages)
				if rng.IntN(share) == 0 {
					asked++
					wanted := strings.Split(want[at], "\n")
					for first, end := rng.IntN(2)*rng.IntN(v.Len()), 0; first < v.Len(); first = end + rng.IntN(9) {
						end = first + 1 + rng.IntN(v.Len()-first)
						if err := errors.Join(rest(first, end, "tag", "send_seq"), rest(first, end),
							rest(first, end)); err != nil {
							return err
						}
						if d := cmp.Diff(wanted[first:end], strings.Split(rowsText(v), "\n")[first:end]); d != "" {
							return fmt.Errorf("1 in %d, batch %d, rows %d to %d: want, got:\n%s", share, at, first,
								end-1,
								d)
						}
					}
				}
				if lines := strings.Count(want[at], "\n"); lines != v.Len() {
					return fmt.Errorf("batch %d has %d rows, want %d", at, v.Len(), lines)
				}
				at++
				return nil
			})
		if err != nil || at != len(want) {
			t.Errorf("1 in %d: %v, %d of %d batches", share, err, at, len(want))
		}
		if share < 10 && asked == 0 {
			t.Errorf("1 in %d: nothing was read late", share)
		}
	}
}

func TestAllLateErrors(t *testing.T) {
	dir := lateRun(t)
	stop := errors.New("stop")
	calls := 0
	err := lateRows(t, dir).AllLate(context.Background(), lateColumnNames,
		func(schema.Batch, schema.Rest) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%v after %d calls, want %v after 1", err, calls, stop)
	}
	err = lateRows(t, dir).AllLate(context.Background(), []string{"comm"},
		func(schema.Batch, schema.Rest) error { return nil })
	if err == nil || !strings.Contains(err.Error(), `column "comm" of table messages cannot be read late`) {
		t.Errorf("a column that is not read at all: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = lateRows(t, dir).AllLate(ctx, lateColumnNames, func(schema.Batch, schema.Rest) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
