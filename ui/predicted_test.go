package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/chrome"
	"github.com/commq/commq/run"
	"github.com/commq/commq/ui"
)

// askPredicted asks for a predicted run.
func askPredicted(t *testing.T, server *httptest.Server, values string) (p ui.Predicted) {
	t.Helper()
	status, _, text := request(t, server, "GET", "/api/predicted?"+values, "", nil)
	if status != 200 {
		t.Fatalf("%s: %d %s", values, status, text)
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPredictedRuns makes more runs than are kept: each can be asked like any other until the fifth removes the one
// that was not used for longest, and Close removes all.
func TestPredictedRuns(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s, err := ui.New(options(t))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	ranks := func(name string) (status int, text string) {
		status, _, text = request(t, server, "POST", "/api/sql?run="+url.QueryEscape(name), "SELECT COUNT(*) AS n FROM events", nil)
		return status, text
	}
	first := askPredicted(t, server, "run=uneven.4&machine=flat")
	if first.Run.Name != "uneven.4 on flat" || first.Run.Ranks != 4 ||
		first.Command != "commq simulate --run uneven.4 --machine flat --name uneven.4.flat" {
		t.Errorf("%+v", first)
	}
	slow := askPredicted(t, server, "run=uneven.4&machine=flat&set=latency_ns=1")
	if slow.Run.Name != "uneven.4 on flat, latency_ns=1" ||
		!strings.Contains(slow.Command, " --set latency_ns=1 --name uneven.4.flat.") {
		t.Errorf("%+v", slow)
	}
	if status, text := ranks(slow.Run.Name); status != 200 {
		t.Errorf("%s: %d %s", slow.Run.Name, status, text)
	}
	_, _, text := request(t, server, "GET", "/api/text/density?run="+url.QueryEscape(slow.Run.Name), "", nil)
	if !strings.Contains(text, "commq query density --run uneven.4.flat.") {
		t.Errorf("the command line: %s", text)
	}
	if _, _, text := request(t, server, "GET", "/api/runs", "", nil); strings.Contains(text, " on flat") {
		t.Errorf("listed as a run of the store: %s", text)
	}
	for _, latency := range []string{"2", "3"} {
		askPredicted(t, server, "run=uneven.4&machine=flat&set=latency_ns="+latency)
	}
	askPredicted(t, server, "run=uneven.4&machine=flat") // used again: kept
	askPredicted(t, server, "run=uneven.4&machine=flat&set=latency_ns=4")
	if status, text := ranks(slow.Run.Name); status != 400 || !strings.Contains(text, "there is no run") {
		t.Errorf("the one used least recently: %d %s", status, text)
	}
	if status, text := ranks(first.Run.Name); status != 200 {
		t.Errorf("the one used again: %d %s", status, text)
	}
	stores, err := filepath.Glob(filepath.Join(temp, "commq-ui-*", "*"))
	if err != nil || len(stores) != 4 {
		t.Errorf("%d stores: %v, %v", len(stores), stores, err)
	}
	for values, want := range map[string]string{
		"run=uneven.4&machine=nosuch":                                         "there is no machine",
		"run=uneven.4&machine=flat&set=name=x":                                "set name=x: want ",
		"run=nosuch&machine=flat":                                             "there is no run",
		"run=uneven.4+on+flat&machine=flat":                                   "is predicted; simulate uneven.4",
		"run=uneven.4&machine=ethernet-40g&set=latency_ns=1&set=cpu_ratio=2.": "cannot simulate",
	} {
		if status, _, text := request(t, server, "GET", "/api/predicted?"+values, "", nil); status != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", values, status, text)
		}
	}
	server.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A predicted run that makes room for another stays as long as a question is being answered, which may be about it.
func TestDroppedRunStaysWhileItIsAsked(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	o := options(t, "uneven.4")
	asked, answer := make(chan string), make(chan bool)
	o.Diagnose = func(_ context.Context, f run.Found) (any, error) {
		asked <- f.Dir
		<-answer
		return nil, nil
	}
	s, err := ui.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server := httptest.NewServer(s)
	defer server.Close()
	first := askPredicted(t, server, "run=uneven.4&machine=flat")
	ended := make(chan bool)
	go func() {
		request(t, server, "GET", "/api/diagnose?run="+url.QueryEscape(first.Run.Name), "", nil)
		close(ended)
	}()
	dir := <-asked
	for _, latency := range []string{"1", "2", "3", "4"} {
		askPredicted(t, server, "run=uneven.4&machine=flat&set=latency_ns="+latency)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("while it is asked: %v", err)
	}
	close(answer)
	<-ended
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("afterwards: %v", err)
	}
}

// TestPredictedBesideCaptured goes from a what-if to the two timelines, with the critical path of each.
func TestPredictedBesideCaptured(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	p := visit(t, chromium, server, "run=cg.A.4&view=whatif&machine=flat&latency=2", chrome.Desktop)
	const button = `[...document.querySelectorAll("button")].find(b => b.textContent.includes("beside the captured"))`
	until(p, "predict", func() bool { return chrome.Eval[bool](p, `!!`+button) })
	chrome.Eval[bool](p, button+`.click(), true`)
	until(p, "draw both", func() bool {
		return chrome.Eval[int](p, `document.querySelectorAll(".strip .note").length`) == 2
	})
	settle(p)
	labels := chrome.Eval[[]string](p, `[...document.querySelectorAll(".strip canvas")].map(c => c.getAttribute("aria-label"))`)
	if !strings.HasPrefix(labels[0], "Timeline of cg.A.4 from") || !strings.HasPrefix(labels[1], "Timeline of cg.A.4 on flat, latency_ns=20000 ") {
		t.Errorf("%q", labels)
	}
	text := chrome.Eval[string](p, `document.body.innerText`)
	for _, want := range []string{"as long as cg.A.4.\n", "as long as cg.A.4 on flat, latency_ns=20000.", "parallel efficiency", "--set latency_ns=20000 --name cg.A.4.flat."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	for _, want := range []string{"beside=predicted", "critical=shown", "machine=flat", "latency=2"} {
		if hash := chrome.Eval[string](p, `location.hash`); !strings.Contains(hash, want) {
			t.Errorf("the address has no %s: %s", want, hash)
		}
	}
	p.KeepPicture("ui-predicted")
	said(p, server)
	dark := visit(t, chromium, server, "run=cg.A.4&view=compare&beside=predicted&machine=flat", chrome.Dark)
	until(dark, "draw both", func() bool { return chrome.Eval[int](dark, `document.querySelectorAll(".strip").length`) == 2 })
	settle(dark)
	dark.KeepPicture("ui-predicted-dark")
	said(dark, server)
}
