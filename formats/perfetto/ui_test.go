package perfetto

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/commq/commq/internal/chrome"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// opened opens a trace in Perfetto's own user interface, in a headless chromium without access to other hosts, and
// returns a function that queries its trace processor.
func opened(t *testing.T, trace func(http.ResponseWriter)) (query func(sql string) []string) {
	t.Helper()
	folder := testenv.Perfetto(t, "../../scripts")
	files := http.FileServer(http.Dir(folder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/trace.json" {
			trace(w)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	ctx := chrome.Start(t)
	if _, err := chromedp.Run(ctx, chromedp.Navigate(server.URL+"/#!/?url="+server.URL+"/trace.json")); err != nil {
		t.Fatalf("open Perfetto: %v", err)
	}
	const ask = `(async () => {
		for (let i = 0; !(window.app && app.trace && app.trace.engine); i++) {
			if (i > 1200) throw new Error("Perfetto has not opened the trace: " + document.body.innerText.slice(0, 2000));
			await new Promise(done => setTimeout(done, 100));
		}
		const result = await app.trace.engine.query(%q);
		const rows = [];
		for (const it = result.iter({}); it.valid(); it.next()) rows.push(result.columns().map(c => String(it.get(c))).join(","));
		return rows;
	})()`
	return func(sql string) []string {
		t.Helper()
		limited, cancel := context.WithTimeout(ctx, 3*time.Minute)
		defer cancel()
		rows, err := chromedp.Run(limited, chromedp.Evaluate[[]string](fmt.Sprintf(ask, sql),
			chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return rows
	}
}

// Perfetto's own trace processor finds in an exported run every call, request and message, where they are and with
// their times, and no error.
func TestExportReadByPerfetto(t *testing.T) {
	const dir = "../../testdata/runs/cg.A.4"
	query := opened(t, func(w http.ResponseWriter) {
		if _, err := Export(context.Background(), dir, w); err != nil {
			t.Error(err)
		}
	})
	calls, requests, flows := map[string]int64{}, map[string]int64{}, map[string]int64{}
	times, waits := map[string]int64{}, map[string]int64{}
	ends := map[int32]map[int64]int64{} // of rows, by rank and seq
	type request struct {
		rank              int32
		name              string
		start, completing int64
	}
	var open []request
	err := writer.ReadTable(context.Background(), dir, &schema.EventsTable, 4096, func(b schema.Batch) error {
		e := b.(*schema.Events)
		for i, rank := range e.Rank {
			name := fmt.Sprintf("rank %d,%s", rank, schema.CallID(e.Call[i]))
			calls[name]++
			times[name] += e.EndNs[i] - e.StartNs[i]
			if ends[rank] == nil {
				ends[rank] = map[int64]int64{}
			}
			ends[rank][e.Seq[i]] = e.EndNs[i]
			if e.DoneSeq[i] != null64 && e.Request[i] != null64 {
				open = append(open, request{rank, name, e.StartNs[i], e.DoneSeq[i]})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range open {
		requests[r.name]++
		waits[r.name] += ends[r.rank][r.completing] - r.start
	}
	err = writer.ReadTable(context.Background(), dir, &schema.MessagesTable, 4096, func(b schema.Batch) error {
		m := b.(*schema.Messages)
		for i, src := range m.Src {
			flows[fmt.Sprintf("rank %d,rank %d", src, m.Dst[i])]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := func(counts, sums map[string]int64) (all []string) {
		for name, n := range counts {
			row := fmt.Sprintf("%s,%d", name, n)
			if sums != nil {
				row += fmt.Sprintf(",%d", sums[name])
			}
			all = append(all, row)
		}
		slices.Sort(all)
		return all
	}
	for _, c := range []struct {
		what, sql string
		want      []string
	}{
		{"errors", "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0", nil},
		{"calls", "SELECT p.name, s.name, count(*), sum(s.dur) FROM slice s JOIN thread_track k ON k.id = s.track_id JOIN thread USING (utid) JOIN process p USING (upid) WHERE s.category <> 'message' GROUP BY 1, 2", rows(calls, times)},
		{"requests", "SELECT p.name, s.name, count(*), sum(s.dur) FROM slice s JOIN process_track k ON k.id = s.track_id JOIN process p USING (upid) WHERE s.category = 'request' GROUP BY 1, 2", rows(requests, waits)},
		{"messages", `SELECT a.name, b.name, count(*) FROM flow f JOIN slice o ON o.id = f.slice_out JOIN slice i ON i.id = f.slice_in JOIN thread_track ot ON ot.id = o.track_id
			JOIN thread_track it ON it.id = i.track_id JOIN thread oth ON oth.utid = ot.utid JOIN thread ith ON ith.utid = it.utid JOIN process a ON a.upid = oth.upid
			JOIN process b ON b.upid = ith.upid GROUP BY 1, 2`, rows(flows, nil)},
		{"ends of messages", `SELECT DISTINCT o.name, i.name, p.name, i.ts >= o.ts, i.ts + i.dur = p.ts + p.dur FROM flow f JOIN slice o ON o.id = f.slice_out JOIN slice i ON i.id = f.slice_in
			JOIN slice p ON p.id = i.parent_id`, []string{"MPI_Send,message,MPI_Wait,1,1"}},
	} {
		got := query(c.sql)
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: the run has, Perfetto has: %s", c.what, diff)
		}
	}
}
