package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/models"
)

// TestUI starts the server as a user does, asks it by the address that it prints, and ends it with Ctrl-C.
func TestUI(t *testing.T) {
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	out, stdout := io.Pipe()
	var errs strings.Builder
	status := make(chan int, 1)
	go func() {
		status <- execute(ctx, []string{"ui", "--store", "../../testdata/runs", "uneven.4", "cg.A.4"}, strings.NewReader(""),
			stdout, &errs)
		stdout.Close()
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("status %d: %s", <-status, errs.String())
	}
	base, token, found := strings.Cut(strings.TrimSpace(address), "?token=")
	if !found || !strings.HasPrefix(base, "http://127.0.0.1:") {
		t.Fatalf("address %q", address)
	}
	get := func(path string) (int, string) {
		r, err := http.NewRequest("GET", base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	if status, text := get("api/runs"); status != 200 || strings.Count(text, `"ranks":4`) != 2 ||
		strings.Contains(text, "bt.C.64") {
		t.Errorf("runs: %d %s", status, text)
	}
	code, text := get("api/diagnose?run=uneven.4")
	if code != 200 || !strings.Contains(text, `"verdict":"uneven.4: 1.55 s`) || !strings.Contains(text, "uneven.c:32") ||
		!strings.Contains(text, `"gains":["735 ms (47.4 %) shared out evenly, 983 ms if it need not be done",`) {
		t.Errorf("diagnosis: %d %.300s", code, text)
	}
	code, text = get("api/whatif?run=uneven.4&machine=flat&set=latency_ns=1000000")
	if code != 200 || !strings.Contains(text, `"predicted_ns":`) || !strings.Contains(text, `"critical_path":[{`) ||
		!strings.Contains(text, "--set latency_ns=1000000") {
		t.Errorf("what if: %d %.300s", code, text)
	}
	code, text = get("api/predicted?run=uneven.4&machine=flat&set=latency_ns=1000000")
	var made struct{ Run struct{ Name string } }
	if err := json.Unmarshal([]byte(text), &made); code != 200 || err != nil {
		t.Errorf("predicted: %d %s, %v", code, text, err)
	}
	if made.Run.Name != "uneven.4 on flat, latency_ns=1000000" {
		t.Errorf("predicted: %s", text)
	}
	code, text = get("api/path?run=" + url.QueryEscape(made.Run.Name) + "&from-ns=0&to-ns=1000000000")
	const command = "critical-path --store ../../testdata/runs --run uneven.4.flat."
	if code != 200 || !strings.Contains(text, `"kind":"`) || !strings.Contains(text, command) {
		t.Errorf("critical path of the predicted run: %d %.500s", code, text)
	}
	// The last 0.1 s, each part by itself.
	code, text = get("api/path?run=uneven.4&from-ns=1450000000&to-ns=1550000000")
	for _, want := range []string{`"to_ns":1550000000,"kind":"compute","call":"MPI_Allreduce"`, `"step_ns":0`, "% compute",
		"commq critical-path --store ../../testdata/runs --run uneven.4"} {
		if code != 200 || !strings.Contains(text, want) {
			t.Errorf("critical path: %d, no %s in %s", code, want, text)
		}
	}
	if code, text := get("api/machines"); code != 200 || strings.Count(text, `"name":`) != len(models.Names()) {
		t.Errorf("machines: %d %s", code, text)
	}
	http.DefaultClient.CloseIdleConnections()
	interrupt()
	select {
	case s := <-status:
		if s != exitDone {
			t.Errorf("status %d: %s", s, errs.String())
		}
	case <-time.After(testenv.Patience):
		t.Error("it does not end")
	}
	if !strings.Contains(errs.String(), "ssh -N -L ") || !strings.Contains(errs.String(), "Ctrl-C ends it") {
		t.Errorf("notes: %s", errs.String())
	}
}

// All users can read the command line of the browser: it names a page that only its owner can read.
func TestSecretIsNotOnTheBrowsersCommandLine(t *testing.T) {
	dir := t.TempDir()
	putFile(t, filepath.Join(dir, "xdg-open"), "#!/bin/sh\ncd "+dir+"\nprintf %s \"$*\" >new && mv new said\n", 0o755)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", dir)
	t.Setenv("DISPLAY", ":0")
	const address = "http://127.0.0.1:1234/?token=0123456789abcdef"
	opened, remove := openBrowser(address)
	if !opened {
		t.Fatal("no browser was opened")
	}
	var said []byte
	var err error
	for end := time.Now().Add(testenv.Patience); ; time.Sleep(10 * time.Millisecond) {
		if said, err = os.ReadFile(filepath.Join(dir, "said")); err == nil || time.Now().After(end) {
			break
		}
	}
	page := string(said)
	if err != nil || strings.Contains(page, "token") || !strings.HasPrefix(page, dir) {
		t.Fatalf("the command line: %q, %v", page, err)
	}
	text, err := os.ReadFile(page)
	if err != nil || strings.Count(string(text), address) != 2 {
		t.Errorf("the page: %s, %v", text, err)
	}
	for path, want := range map[string]os.FileMode{page: 0o600, filepath.Dir(page): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	remove()
	if _, err := os.Stat(filepath.Dir(page)); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
}

func TestUIMistakes(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"ui --store ../../testdata/runs nosuch", "nosuch"},
		{"ui --store ../../testdata/runs --port 70000", "--port 70000: want 1 to 65535"},
		{"ui --store ../../testdata/runs --timeout 0s", "--timeout 0s"},
		{"ui --store ../../testdata/runs --once o.txt", "--once o.txt: want a name that ends in .html"},
		{"ui --store ../../testdata/runs --memory 1", "--memory 1: want at least"},
		{"ui --store ../../testdata/runs --threads -1", "--threads -1"},
		{"ui --store " + t.TempDir(), "no run"},
	} {
		status, out, errs := commandLine("", strings.Fields(c.line)...)
		if status != exitCannot || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: status %d, %q, %q", c.line, status, out, errs)
		}
	}
}

// Each list reads the store again, and warns only once about a run that cannot be read.
func TestUnreadableRunIsToldOnce(t *testing.T) {
	store := t.TempDir()
	if err := os.Mkdir(filepath.Join(store, "a"), 0o777); err != nil {
		t.Fatal(err)
	}
	putFile(t, filepath.Join(store, "a", "manifest.json"), "{", 0o644)
	run, err := filepath.Abs("../../testdata/runs/uneven.4")
	if err == nil {
		err = os.Symlink(run, filepath.Join(store, "b"))
	}
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	find := (&uiOptions{}).finder(&app{store: store, stderr: &errs})
	for range 3 {
		if _, err := find(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Count(errs.String(), "left out: ") != 1 {
		t.Errorf("%s", errs.String())
	}
}

// A run that is removed after the start is left out, with one warning; the others are still shown.
func TestRemovedRunIsLeftOut(t *testing.T) {
	store := t.TempDir()
	run, err := filepath.Abs("../../testdata/runs/uneven.4")
	for _, name := range []string{"a", "b"} {
		if err == nil {
			err = os.Symlink(run, filepath.Join(store, name))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	find := (&uiOptions{runs: []string{"a", "b"}}).finder(&app{store: store, stderr: &errs})
	if found, err := find(context.Background()); len(found) != 2 || err != nil {
		t.Fatalf("at the start: %v, %v", found, err)
	}
	if err := os.Remove(filepath.Join(store, "a")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if found, err := find(context.Background()); len(found) != 1 || found[0].Name != "b" || err != nil {
			t.Errorf("after a was removed: %v, %v", found, err)
		}
	}
	if strings.Count(errs.String(), "left out: ") != 1 {
		t.Errorf("%s", errs.String())
	}
	if _, err := (&uiOptions{runs: []string{"a", "b"}}).finder(&app{store: store})(context.Background()); err == nil {
		t.Error("a run that is not there at the start is no mistake")
	}
}
