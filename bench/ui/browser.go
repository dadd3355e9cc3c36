package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// browsed is what a browser needs to open a run and to move in it.
type browsed struct {
	open   time.Duration // from the address to the first picture
	frames []float64     // ms between frames while the wheel zooms in and out for some seconds
	memory int64         // bytes of all processes of the browser, pages that they share counted once
}

// String returns cells of a table: seconds, ms, ms, MiB.
func (b browsed) String() string {
	return fmt.Sprintf("%.2f | %.0f | %.0f | %d", b.open.Seconds(), quantile(b.frames, 0.5), quantile(b.frames, 0.95),
		b.memory>>20)
}

// view is a page to open: ready is true when the picture is there, and zoom names what the wheel turns on.
type view struct {
	address, ready, zoom string
	ctrl                 bool // the wheel zooms with the control key only
}

// commqView is the timeline of a run in a server's page.
func commqView(address, run string) view {
	return view{address: address + "#run=" + run + "&view=timeline", zoom: "section canvas",
		ready: `!!document.querySelector("section canvas") && !document.querySelector("section[aria-busy=true]")`}
}

// perfettoView is a trace in Perfetto's user interface.
func perfettoView(server string) view {
	return view{address: server + "/#!/?url=" + server + "/trace.json", zoom: "body", ctrl: true,
		ready: `!!(window.app && app.trace && app.trace.engine && document.querySelector(".pf-track, .track"))`}
}

// patience is how long opening a trace may take.
const patience = 15 * time.Minute

// browse opens a view in a new headless browser that reaches this machine only.
func browse(v view) (b browsed, err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.WindowSize(1280, 900), chromedp.NoSandbox,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	allocator, endAll := chromedp.NewExecAllocator(context.Background(), options...)
	defer endAll()
	ctx, end := chromedp.NewContext(allocator)
	defer end()
	if _, err := chromedp.Run(ctx, chromedp.Title()); err != nil {
		return b, fmt.Errorf("start chromium: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begin := time.Now()
	if _, err := chromedp.Run(limited, chromedp.Navigate(v.address)); err != nil {
		return b, err
	}
	if err := v.wait(limited); err != nil {
		return b, err
	}
	b.open = time.Since(begin)
	turn := chromedp.Evaluate[[]float64](fmt.Sprintf(wheel, v.zoom, v.ctrl), chromedp.EvalAwaitPromise)
	if b.frames, err = chromedp.Run(limited, turn); err != nil {
		return b, fmt.Errorf("zoom: %w", err)
	}
	b.memory, err = memoryBelow(os.Getpid(), "chrom")
	return b, err
}

// wait waits for the picture, or for a dialogue that says why there is none.
func (v view) wait(ctx context.Context) error {
	const dialogue = `document.querySelector(".pf-modal, .modal-dialog")?.innerText ?? ""`
	for {
		ready, err := chromedp.Run(ctx, chromedp.Evaluate[bool](v.ready))
		if err != nil {
			return fmt.Errorf("no picture: %w", err)
		}
		if ready {
			return nil
		}
		if text, err := chromedp.Run(ctx, chromedp.Evaluate[string](dialogue)); err == nil && text != "" {
			return errors.New(text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// wheel turns the wheel for four seconds, once a frame, by turns towards and back, and returns the ms between frames.
const wheel = `(async () => {
	const on = document.querySelector(%q), box = on.getBoundingClientRect(), frames = [];
	let last = performance.now(), n = 0;
	const end = last + 4000;
	return new Promise(done => requestAnimationFrame(function step(now) {
		frames.push(now - last);
		last = now;
		const x = box.left + box.width * 0.6, y = box.top + box.height / 2;
		(document.elementFromPoint(x, y) ?? on).dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true,
			ctrlKey: %t, clientX: x, clientY: y, deltaY: n++ %% 120 < 60 ? -30 : 30 }));
		if (now < end) requestAnimationFrame(step);
		else done(frames.slice(1));
	}));
})()`

// memoryBelow sums the memory of all descendants of a process whose command has a word in it.
func memoryBelow(pid int, word string) (sum int64, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, err
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it ended
		}
		for _, child := range strings.Fields(string(text)) {
			n, err := strconv.Atoi(child)
			if err != nil {
				return 0, err
			}
			if command, _ := os.ReadFile("/proc/" + child + "/cmdline"); strings.Contains(string(command), word) {
				sum += proportional(child)
			}
			below, err := memoryBelow(n, word)
			if err != nil {
				return 0, err
			}
			sum += below
		}
	}
	return sum, nil
}

// proportional returns the memory of a process, of shared pages its part; 0 if the process ended.
func proportional(pid string) int64 {
	text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

// browseCommq measures the page of commq ui, from starting the server on.
func browseCommq(commq, store, run string) (browsed, error) {
	cmd := exec.Command(commq, "ui", "--store", store, "--run", run, "--browser=false")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return browsed{}, err
	}
	if err := cmd.Start(); err != nil {
		return browsed{}, err
	}
	defer func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait() // it ends by the signal, which is no error here
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return browsed{}, fmt.Errorf("the server printed no address: %w", err)
	}
	return browse(commqView(strings.TrimSpace(address), run))
}

// browsePerfetto exports a run and measures Perfetto's page with it. folder has the page's files.
func browsePerfetto(commq, store, run, folder string) (b browsed, bytes int64, took time.Duration, err error) {
	temp, err := os.MkdirTemp("", "bench-ui-")
	if err != nil {
		return b, 0, 0, err
	}
	defer os.RemoveAll(temp)
	trace := filepath.Join(temp, "trace.json")
	begin := time.Now()
	export := exec.Command(commq, "export", "perfetto", "--store", store, "--run", run, "-o", trace)
	if text, err := export.CombinedOutput(); err != nil {
		return b, 0, 0, fmt.Errorf("export: %w: %s", err, text)
	}
	took = time.Since(begin)
	info, err := os.Stat(trace)
	if err != nil {
		return b, 0, 0, err
	}
	files := http.FileServer(http.Dir(folder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/trace.json" {
			http.ServeFile(w, r, trace)
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	b, err = browse(perfettoView(server.URL))
	return b, info.Size(), took, err
}

// browseAll prints a line for each run: the browser's figures of commq ui and, with a folder, of Perfetto.
func browseAll(commq, store, folder string, runs []string) error {
	fmt.Println("| run | commq ui: first picture, s | frame, median, ms | 95th percentile, ms | browser, MiB | " +
		"Perfetto: export, s | MB | first picture, s | frame, median, ms | 95th percentile, ms | browser, MiB |")
	fmt.Println("|" + strings.Repeat("---|", 11))
	for _, run := range runs {
		ours, err := browseCommq(commq, store, run)
		if err != nil {
			return fmt.Errorf("%s: %w", run, err)
		}
		line := fmt.Sprintf("| %s | %v | ", run, ours)
		if folder != "" {
			theirs, bytes, export, err := browsePerfetto(commq, store, run, folder)
			var figures string
			if err == nil {
				figures = theirs.String()
			} else {
				figures = strings.Join(strings.Fields(err.Error()), " ") + " | | |"
			}
			line += fmt.Sprintf("%.1f | %d | %s |", export.Seconds(), bytes/1e6, figures)
		}
		fmt.Println(line)
	}
	return nil
}
