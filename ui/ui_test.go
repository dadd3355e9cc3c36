package ui_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
	"github.com/commq/commq/ui"
)

const token = "0123456789abcdef0123456789abcdef"

// options are those of a server on runs of testdata, or all.
func options(t testing.TB, names ...string) ui.Options {
	t.Helper()
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	return ui.Options{
		Token: token,
		Runs: func(context.Context) ([]run.Found, error) {
			if len(names) > 0 {
				return run.FindAll("../testdata/runs", names)
			}
			return run.All("../testdata/runs", func(err error) { t.Error(err) })
		},
		Args:     func(f run.Found) []string { return []string{"--run", f.Name} },
		Queries:  all,
		Diagnose: func(context.Context, run.Found) (any, error) { return map[string]string{"verdict": "it is slow"}, nil },
		Machines: []ui.Machine{{Name: "flat", LatencyNs: 10000, BytesPerSecond: 1e9, CPURatio: 1},
			{Name: "ethernet-40g", LatencyNs: 1930, BytesPerSecond: 4.65e9, CPURatio: 1}},
		Simulate: simulated,
		Predict:  predicted,
		CriticalPath: func(_ context.Context, f run.Found) (ui.Path, error) {
			return func(from, to int64, most int) ui.PathParts {
				middle := (from + to) / 2
				return ui.PathParts{Summary: "as long as " + f.Name, Parts: []ui.PathPart{{Rank: 0, FromNs: from, ToNs: middle,
					Kind: "compute"}, {Rank: 1, FromNs: middle, ToNs: to, Kind: "transfer", Call: "MPI_Recv"}}}
			}, nil
		},
		Timeout: 5 * time.Minute,
	}
}

// serve starts a server on the runs of testdata.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	return serveWith(t, options(t))
}

func serveWith(t *testing.T, o ui.Options) *httptest.Server {
	t.Helper()
	s, err := ui.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// simulated stands for commq simulate: a second, and a second more for each change.
func simulated(_ context.Context, f run.Found, machine string, changes []string) (any, error) {
	seconds := int64(1 + len(changes))
	var ranks []map[string]any
	for rank := range f.Manifest.Ranks {
		ranks = append(ranks, map[string]any{"rank": rank, "compute_ns": seconds * 5e8, "point_to_point_ns": seconds * 3e8,
			"collective_ns": seconds * 2e8, "cpu_wait_ns": 0})
	}
	return map[string]any{"predicted_ns": seconds * 1e9, "machine": machine, "parallel_efficiency": 0.5, "load_balance": 0.8,
		"serialisation": 0.7, "transfer": 0.9, "ranks": ranks, "critical_path": []map[string]any{{"callsite": "cg.f:877",
			"call": "MPI_Send", "rank": 0, "path_ns": 1e8, "compute_ns": 1e7, "share": 0.1}}}, nil
}

// predicted stands for commq simulate --name: the run as it is, under the new name.
func predicted(_ context.Context, f run.Found, machine string, changes []string, store, name string) error {
	if machine != "flat" && len(changes) > 1 {
		return fmt.Errorf("cannot simulate %s on %s", f.Name, machine)
	}
	return os.CopyFS(filepath.Join(store, name), os.DirFS(f.Dir))
}

// request is a request with the secret; change may take that back.
func request(t *testing.T, server *httptest.Server, method, path, body string,
	change func(*http.Request)) (status int, header http.Header, text string) {
	t.Helper()
	r, err := http.NewRequest(method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if change != nil {
		change(r)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(read)
}

func TestOnlyTheOwnerMayAsk(t *testing.T) {
	server := serve(t)
	unnamed := func(r *http.Request) { r.Header.Del("Authorization") }
	with := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	port := strings.TrimPrefix(server.URL, "http://127.0.0.1:")
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		status int
	}{
		"the secret in a header":       {"/api/runs", nil, 200},
		"no secret":                    {"/api/runs", unnamed, 403},
		"no secret, the page":          {"/", unnamed, 403},
		"no secret, a file":            {"/app.js", unnamed, 403},
		"a wrong secret":               {"/api/runs", with("Authorization", "Bearer "+token[1:]+"0"), 403},
		"the secret in the address":    {"/?token=" + token, unnamed, 303},
		"a wrong one in the address":   {"/?token=x", unnamed, 403},
		"not for the interface":        {"/api/runs?token=" + token, unnamed, 403},
		"another name of this address": {"/api/runs", host("evil.example:" + port), 403},
		"a name that begins alike":     {"/api/runs", host("localhost.evil.example"), 403},
		"an ssh tunnel":                {"/api/runs", host("localhost:9999"), 200},
		"its own page":                 {"/api/runs", with("Origin", server.URL), 200},
		"another page":                 {"/api/runs", with("Origin", "https://evil.example"), 403},
		"another port":                 {"/api/runs", with("Origin", "http://127.0.0.1:1"), 403},
		"a page without origin":        {"/api/runs", with("Origin", "null"), 403},
		"another site's picture":       {"/api/runs", with("Sec-Fetch-Site", "cross-site"), 403},
		"a link in a mail":             {"/", with("Sec-Fetch-Site", "cross-site"), 200},
	} {
		t.Run(name, func(t *testing.T) {
			status, header, text := request(t, server, "GET", c.path, "", c.change)
			if status != c.status {
				t.Errorf("status %d, want %d: %s", status, c.status, text)
			}
			if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") ||
				strings.Contains(policy, "unsafe") {
				t.Errorf("policy %q", policy)
			}
			if status == 403 && (strings.Contains(text, "cg.A.4") || strings.Contains(text, "<script")) {
				t.Errorf("refused, but: %s", text)
			}
			if status == 303 && (header.Get("Location") != "/" ||
				!strings.Contains(header.Get("Set-Cookie"), "HttpOnly; SameSite=Lax")) {
				t.Errorf("%v", header)
			}
		})
	}
}

// A link from another site opens the page with the cookie of an earlier visit, and nothing else.
func TestLinkFromElsewhereOpensThePageOnly(t *testing.T) {
	server := serve(t)
	unnamed := func(r *http.Request) { r.Header.Del("Authorization") }
	_, header, _ := request(t, server, "GET", "/?token="+token, "", unnamed)
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	for _, c := range []struct {
		method, path, site string
		status             int
	}{
		{"GET", "/", "cross-site", 200},
		{"GET", "/", "same-site", 200},
		{"GET", "/api/runs", "same-origin", 200},
		{"GET", "/api/runs", "cross-site", 403},
		{"GET", "/api/runs", "same-site", 403},
		{"GET", "/app.js", "cross-site", 403},
		{"POST", "/", "cross-site", 403},
		{"POST", "/api/sql?run=cg.A.4", "cross-site", 403},
	} {
		status, _, text := request(t, server, c.method, c.path, "SELECT 1", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("Cookie", cookie)
			r.Header.Set("Sec-Fetch-Site", c.site)
		})
		if status != c.status {
			t.Errorf("%s %s %s: status %d, want %d: %s", c.site, c.method, c.path, status, c.status, text)
		}
	}
}

func TestRefusedQuestions(t *testing.T) {
	server := serve(t)
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/api/ask/density?run=nosuch", "", `there is no run "nosuch" here`},
		{"GET", "/api/ask/density?run=../runs/cg.A.4", "", `there is no run "../runs/cg.A.4" here`},
		{"GET", "/api/ask/density", "", "no run named"},
		{"GET", "/api/ask/nosuch?run=cg.A.4", "", `there is no query "nosuch"`},
		{"GET", "/api/ask/density?run=cg.A.4&run=cg.A.16", "", ""},
		{"GET", "/api/ask/density?run=cg.A.4&colour=red", "", `no parameter "colour"`},
		{"GET", "/api/ask/density?run=cg.A.4&collectives=all", "", "collectives"},
		{"GET", "/api/ask/density?run=cg.A.4&where=1)+OR+(SELECT", "", "where"},
		{"GET", "/api/ask/density?run=cg.A.4&limit=0", "", `limit "0"`},
		{"GET", "/api/ask/density?run=cg.A.4&limit=9999999", "", "limit"},
		{"GET", "/api/text/density?run=cg.A.4&limit=x", "", `limit "x"`},
		{"GET", "/api/whatif?run=cg.A.4&machine=/etc/passwd", "", `no machine "/etc/passwd"`},
		{"GET", "/api/whatif?run=cg.A.4&machine=flat&set=mapping=/etc/passwd", "", "set mapping=/etc/passwd: want latency_ns"},
		{"GET", "/api/whatif?run=cg.A.4&run=cg.A.16&machine=flat", "", "want one run"},
		{"GET", "/api/path?run=cg.A.4&from-ns=9&to-ns=3", "", `from-ns "9" and to-ns "3"`},
		{"GET", "/api/path?run=cg.A.4&from-ns=x", "", `from-ns "x"`},
		{"POST", "/api/sql?run=cg.A.4", "SELECT * FROM read_csv('/etc/passwd')", "passwd"},
		{"POST", "/api/sql?run=cg.A.4", "COPY events TO '/tmp/x.csv'", ""},
		{"POST", "/api/sql?run=cg.A.4", "SELECT nosuch FROM events", "nosuch"},
		{"POST", "/api/sql?run=cg.A.4", "SELECT '" + strings.Repeat("x", 1<<20) + "'", "too large"},
		{"POST", "/api/sql?run=cg.A.4&limit=-1", "SELECT 1", "limit"},
	} {
		status, _, text := request(t, server, c.method, c.path, c.body, nil)
		if status != 400 || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: status %d: %s; want 400 with %q", c.method, c.path, status, text, c.want)
		}
	}
	for _, path := range []string{"/..%2f..%2fgo.mod", "/../server.go", "/assets/../server.go", "/api/nosuch"} {
		if status, _, text := request(t, server, "GET", path, "", nil); status != 404 && status != 301 && status != 307 {
			t.Errorf("%s: status %d: %.80s", path, status, text)
		}
	}
}

func TestAnswersAreThoseOfTheEngine(t *testing.T) {
	server := serve(t)
	for _, c := range []struct {
		method, path, body string
		rows               int64
		more               string
	}{
		{"GET", "/api/ask/density?run=cg.A.4&collectives=none", "", 8, "false"},
		{"GET", "/api/ask/density?run=cg.A.4&collectives=none&limit=3", "", 3, "true"},
		{"GET", "/api/ask/timeline-calls?run=cg.A.4&to-rank=0&to-s=0.001", "", 1, "false"},
		{"POST", "/api/sql?run=cg.A.4", "SELECT count(*) FROM ranks", 1, "false"},
	} {
		status, header, text := request(t, server, c.method, c.path, c.body, nil)
		if status != 200 || header.Get("Commq-More") != c.more {
			t.Errorf("%s: status %d, more %q, want %s: %.200s", c.path, status, header.Get("Commq-More"), c.more, text)
			continue
		}
		stream, err := ipc.NewReader(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		rows := int64(0)
		for stream.Next() {
			rows += stream.RecordBatch().NumRows()
		}
		if rows != c.rows || stream.Err() != nil {
			t.Errorf("%s: %d rows, want %d (%v)", c.path, rows, c.rows, stream.Err())
		}
	}
	_, _, text := request(t, server, "GET", "/api/text/density?run=cg.A.4&where=tag%3D9&collectives=rooted", "", nil)
	if !strings.Contains(text, `"command":"commq query density --run cg.A.4 --where tag=9"`) ||
		!strings.Contains(text, "CREATE VIEW") {
		t.Errorf("text: %s", text)
	}
}

// Every answer about one run tells its digest, so that a page sees that the run was replaced.
func TestAnswersTellTheDigest(t *testing.T) {
	server := serve(t)
	found, err := run.Find("../testdata/runs", "cg.A.4")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"facts?", "diagnose?", "path?from-ns=0&to-ns=9&", "whatif?machine=flat&",
		"predicted?machine=flat&", "ask/density?limit=1&"} {
		status, header, text := request(t, server, "GET", "/api/"+path+"run=cg.A.4", "", nil)
		if digest := header.Get("Commq-Digest"); status != 200 || digest == "" || digest != found.Manifest.Digest {
			t.Errorf("%s: status %d, digest %q: %.200s", path, status, digest, text)
		}
	}
}

// TestOwnQueries makes files of SQL that a run answers.
func TestOwnQueries(t *testing.T) {
	server := serve(t)
	for _, c := range []struct {
		path, sql string
		status    int
		want      string
	}{
		{"?run=cg.A.4&name=heaviest&summary=Who+sends.", "SELECT src FROM messages LIMIT 1", 200, "-- column src INTEGER -:"},
		{"?run=cg.A.4&name=density&summary=Who+sends.", "SELECT src FROM messages", 400, `there is a query "density" already`},
		{"?run=cg.A.4&name=../x&summary=Who+sends.", "SELECT src FROM messages", 400, `name "../x"`},
		{"?run=cg.A.4&name=x&summary=Who+sends.", "SELECT nosuch FROM messages", 400, "nosuch"},
		{"?run=cg.A.4&name=x&summary=Who+sends.", "COPY messages TO 'x.csv'", 400, ""},
		{"?name=x&summary=Who+sends.", "SELECT 1", 400, "no run named"},
	} {
		status, _, text := request(t, server, "POST", "/api/own"+c.path, c.sql, nil)
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: status %d: %s; want %d with %q", c.path, c.sql, status, text, c.status, c.want)
		}
	}
}

// TestAQuestionEndsWithItsPage checks that the engine is free again soon after the page that asked went away.
func TestAQuestionEndsWithItsPage(t *testing.T) {
	server := serve(t)
	request(t, server, "POST", "/api/sql?run=cg.A.4", "SELECT 1", nil) // the engine is open
	ctx, leave := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/api/sql?run=cg.A.4",
		strings.NewReader("SELECT sum(a.i * b.i) FROM range(10000000) a(i), range(10000000) b(i)"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	asked := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(r)
		asked <- err
	}()
	time.Sleep(300 * time.Millisecond) // it is running, or waits to: both must end
	leave()
	if err := <-asked; err == nil {
		t.Error("10^14 rows were summed")
	}
	if status, _, text := request(t, server, "POST", "/api/sql?run=cg.A.4", "SELECT 1", nil); status != 200 {
		t.Errorf("afterwards: %d %s", status, text)
	}
}

func TestManyRunsInTurn(t *testing.T) {
	server := serve(t)
	for range 2 {
		for _, name := range []string{"cg.A.4", "ep.W.4", "mg.W.2", "mg.W.4", "mg.W.8", "rma.3"} {
			path := fmt.Sprintf("/api/sql?run=%s", name)
			if status, _, text := request(t, server, "POST", path, "SELECT run FROM runs", nil); status != 200 {
				t.Errorf("%s: %d %s", name, status, text)
			}
		}
	}
}

// Close waits for what is being answered: the engines and the predicted runs are in use until then.
func TestCloseWaitsForQuestions(t *testing.T) {
	o := options(t)
	asked, answer := make(chan bool), make(chan bool)
	o.Diagnose = func(context.Context, run.Found) (any, error) {
		close(asked)
		<-answer
		return nil, nil
	}
	s, err := ui.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	ended := make(chan int)
	go func() {
		status, _, _ := request(t, server, "GET", "/api/diagnose?run=uneven.4", "", nil)
		ended <- status
	}()
	<-asked
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	time.Sleep(20 * time.Millisecond)
	if len(closed) > 0 {
		t.Error("closed while a question was being answered")
	}
	close(answer)
	if status := <-ended; status != 200 {
		t.Errorf("the question: status %d", status)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if status, _, text := request(t, server, "GET", "/api/diagnose?run=uneven.4", "", nil); status != 503 {
		t.Errorf("after Close: %d %s", status, text)
	}
}

// A page that is interrupted in a question that may fail is not written.
func TestInterruptedPage(t *testing.T) {
	o := options(t, "uneven.4")
	ctx, interrupt := context.WithCancel(context.Background())
	o.Diagnose = func(ctx context.Context, _ run.Found) (any, error) {
		interrupt()
		return nil, ctx.Err()
	}
	s, err := ui.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b bytes.Buffer
	if err := s.WritePage(ctx, &b); !errors.Is(err, context.Canceled) || b.Len() > 0 {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
}
