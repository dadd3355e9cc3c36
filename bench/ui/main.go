// Command ui measures how fast commq ui answers the timeline of runs of any size (bench/ui.md).
//
//	go run ./bench/gen --pattern halo --ranks 64 --messages 1000000 --store runs --run halo.1000000
//	go run ./bench/ui --commq ./commq --store runs halo.1000000 ... >> ui.md
//
// Each run has a server of its own. It is asked what the page asks: first the whole run, then a path that zooms by a half
// to 100 µs, at each depth with two steps aside. With --read rows nothing is answered from sums.
//
//	go run ./bench/ui --commq ./commq --store runs --browser --perfetto FOLDER halo.1000000 ...
//
// opens each run in a headless browser instead, and its export in Perfetto's page (scripts/perfetto-ui.txt has it).
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
)

func main() {
	commq := flag.String("commq", "commq", "program to measure")
	store := flag.String("store", "runs", "folder of runs")
	read := flag.String("read", "auto", "what the timeline reads: auto, rows or sums")
	browser := flag.Bool("browser", false, "open each run in a browser, and measure its frames and its memory")
	perfetto := flag.String("perfetto", "", "with --browser: folder of Perfetto's user interface, to open each run in too")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "ui: name runs of the store")
		os.Exit(2)
	}
	if *browser {
		if err := browseAll(*commq, *store, *perfetto, flag.Args()); err != nil {
			fmt.Fprintln(os.Stderr, "ui:", err)
			os.Exit(2)
		}
		return
	}
	fmt.Println("| run | ranks | messages | calls | first picture, s | tile, median, ms | 95th percentile, ms | CPU time of a tile, " +
		"median, ms | 95th percentile, ms | tiles | most rows of a tile | peak memory of the server, MiB |")
	fmt.Println("|" + strings.Repeat("---|", 12))
	for _, run := range flag.Args() {
		line, err := measure(*commq, *store, run, *read)
		if err != nil {
			fmt.Fprintln(os.Stderr, "ui:", run+":", err)
			os.Exit(2)
		}
		fmt.Println(line)
	}
}

// listed is a run in the page's list.
type listed struct {
	Name                   string
	Ranks, Calls, Messages int64
	EndNs                  float64 `json:"end_ns"`
}

// measure starts a server on a run, asks it, and returns a line of the table.
func measure(commq, store, run, read string) (line string, err error) {
	cmd := exec.Command(commq, "ui", "--store", store, "--run", run, "--browser=false")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return "", err
	}
	stop := func() int64 { // KiB
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait() // it ends by the signal, which is no error here
		return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", fmt.Errorf("the server printed no address: %w", err)
	}
	p, err := open(strings.TrimSpace(address), run, read, cmd.Process.Pid)
	if err != nil {
		stop()
		return "", err
	}
	first := time.Since(begin)
	tiles, cores, err := p.zoom()
	peak := stop()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %.2f | %d | %d | %d | %d | %d | %d | %d |", run, p.run.Ranks, p.run.Messages,
		p.run.Calls, first.Seconds(), share(tiles, 0.5), share(tiles, 0.95), share(cores, 0.5), share(cores, 0.95), len(tiles),
		p.mostRows, peak>>10), nil
}

// share returns a quantile in ms.
func share(times []time.Duration, q float64) int64 { return quantile(times, q).Milliseconds() }

// quantile returns a quantile of values, which it sorts.
func quantile[T cmp.Ordered](values []T, q float64) T {
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}

// coreTime returns the CPU time of a process so far, of all cores; on a busy machine it tells more than the clock.
func coreTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name before it can have spaces
	fields := strings.Fields(after)
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	const tick = time.Second / 100
	return time.Duration(user+system) * tick, nil
}

// page asks what the page in a browser asks.
type page struct {
	client   *http.Client
	base     *url.URL
	run      listed
	read     string
	pid      int // of the server
	mostRows int
}

// open loads the page and asks its first picture.
func open(address, run, read string, pid int) (*page, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	p := &page{client: &http.Client{Jar: jar}, read: read, pid: pid}
	if p.base, err = url.Parse(address); err != nil {
		return nil, err
	}
	if _, err := p.get(address); err != nil {
		return nil, err
	}
	for _, file := range []string{"app.js", "app.css"} {
		if _, err := p.get(p.base.ResolveReference(&url.URL{Path: file}).String()); err != nil {
			return nil, err
		}
	}
	body, err := p.get(p.base.ResolveReference(&url.URL{Path: "api/runs"}).String())
	if err != nil {
		return nil, err
	}
	var runs []listed
	if err := json.Unmarshal(body, &runs); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(runs, func(r listed) bool { return r.Name == run })
	if at < 0 {
		return nil, errors.New("the server does not list the run")
	}
	p.run = runs[at]
	return p, p.tile(0, p.run.EndNs)
}

// zoom goes into the run and returns how long each answer took, and the CPU time of the server.
func (p *page) zoom() (tiles, cores []time.Duration, err error) {
	for span := p.run.EndNs / 2; span > 1e5; span /= 2 {
		for _, aside := range []float64{0, 0.25, -0.25} {
			from := 0.618*p.run.EndNs - span/2 + aside*span
			before, err := coreTime(p.pid)
			if err != nil {
				return nil, nil, err
			}
			begin := time.Now()
			if err := p.tile(max(0, from), min(from+span, p.run.EndNs)); err != nil {
				return nil, nil, err
			}
			tiles = append(tiles, time.Since(begin))
			after, err := coreTime(p.pid)
			if err != nil {
				return nil, nil, err
			}
			cores = append(cores, after-before)
		}
	}
	return tiles, cores, nil
}

// tile asks for a window of time, as timeline-scene.ts does in a window of 1200 by 700 pixels.
func (p *page) tile(from, to float64) error {
	given := url.Values{"run": {p.run.Name}, "bins": {"600"}, "rows": {"350"}, "lines": {"2000"}, "read": {p.read}, "order": {"any"}}
	if to-from < p.run.EndNs {
		given.Set("from-s", fmt.Sprintf("%.9f", from/1e9))
		given.Set("to-s", fmt.Sprintf("%.9f", to/1e9))
	}
	body, err := p.get(p.base.ResolveReference(&url.URL{Path: "api/ask/timeline", RawQuery: given.Encode()}).String())
	if err != nil {
		return err
	}
	rows, err := rowsOf(body)
	if err != nil {
		return err
	}
	p.mostRows = max(p.mostRows, rows)
	const mostCalls = 20000
	if calls := float64(p.run.Calls) * (to - from) / p.run.EndNs; calls > mostCalls {
		return nil
	}
	for _, name := range []string{"bins", "rows", "lines", "read"} {
		given.Del(name)
	}
	given.Set("limit", fmt.Sprint(2*mostCalls))
	_, err = p.get(p.base.ResolveReference(&url.URL{Path: "api/ask/timeline-calls", RawQuery: given.Encode()}).String())
	return err
}

// get returns the body of an answer.
func (p *page) get(address string) ([]byte, error) {
	r, err := p.client.Get(address)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", r.Request.URL.Path, r.Status, bytes.TrimSpace(body))
	}
	return body, err
}

// rowsOf counts the rows of an Arrow stream.
func rowsOf(stream []byte) (n int, err error) {
	r, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		return 0, err
	}
	defer r.Release()
	for r.Next() {
		n += int(r.RecordBatch().NumRows())
	}
	return n, r.Err()
}
