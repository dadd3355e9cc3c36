package report_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/commq/commq/internal/testenv"
)

// startBrowser starts a headless chromium without access to any host, and ends it with the test.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	testenv.Need(t, "chromium")
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.WindowSize(1280, 900),
		chromedp.Flag("hide-scrollbars", false),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"))
	allocator, endAll := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		graceful, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := chromedp.Cancel(graceful); err != nil {
			t.Errorf("end chromium: %v", err)
		}
		end()
		endAll()
		if left := processesOf(t, os.Getpid()); len(left) > 0 {
			t.Errorf("processes are left: %q", left)
		}
	})
	if _, err := chromedp.Run(ctx, chromedp.Title()); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}

// processesOf returns the command lines of all descendants of a process.
func processesOf(t *testing.T, pid int) []string {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, thread := range threads {
		children, err := os.ReadFile(thread)
		if err != nil {
			continue // it ended
		}
		for _, child := range strings.Fields(string(children)) {
			var n int
			fmt.Sscan(child, &n)
			command, _ := os.ReadFile("/proc/" + child + "/cmdline")
			all = append(append(all, strings.ReplaceAll(string(command), "\x00", " ")), processesOf(t, n)...)
		}
	}
	return all
}

// tab is a page in a browser, with its requests and messages.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string // addresses of all requests except those for the page itself and its data: URLs
	console  []string // messages, exceptions, and complaints of the browser
	dialogs  []string
}

// look is how a page is shown: window size, theme and medium.
type look struct {
	width, height int64
	mobile, dark  bool
	media         string // print, or "" for the screen
}

var (
	desktop = look{width: 1280, height: 900}
	dark    = look{width: 1280, height: 900, dark: true}
	phone   = look{width: 390, height: 844, mobile: true}
	paper   = look{width: 794, height: 1123, media: "print"} // A4
)

// open opens a page in a new tab, which is closed with the test.
func open(t *testing.T, chromium context.Context, text string, l look) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &tab{t: t}
	ctx, closeTab := chromedp.NewContext(chromium,
		chromedp.WithListener(func(event any) { p.hear(event, "file://"+file) }))
	t.Cleanup(closeTab)
	p.ctx = ctx
	do(p, chromedp.Title()) // the tab lives as long as the context of its first action, which therefore has no limit
	p.show(l)
	do(p, chromedp.Navigate("file://"+file))
	return p
}

// do runs an action, which must succeed within a minute.
func do[T any](p *tab, a chromedp.Action[T]) T {
	p.t.Helper()
	ctx := p.ctx
	if chromedp.FromContext(ctx).Target != nil {
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		ctx = limited
	}
	result, err := chromedp.Run(ctx, a)
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// eval evaluates JavaScript in the page.
func eval[T any](p *tab, script string) T {
	p.t.Helper()
	return do(p, chromedp.Evaluate[T](script))
}

func (p *tab) show(l look) {
	p.t.Helper()
	var how []chromedp.EmulateViewportOption
	if l.mobile {
		how = append(how, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulateScale(2))
	}
	do(p, chromedp.EmulateViewport(l.width, l.height, how...))
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	media := emulation.SetEmulatedMediaParams{Media: l.media,
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, media); err != nil {
		p.t.Fatal(err)
	}
}

// hear records every action of the page that a report must not do.
func (p *tab) hear(event any, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; u != address && u != "about:blank" && !strings.HasPrefix(u, "data:") {
			p.requests = append(p.requests, u)
		}
	case *runtime.EventConsoleAPICalled:
		p.console = append(p.console, string(e.Type))
	case *runtime.EventExceptionThrown:
		p.console = append(p.console, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		p.console = append(p.console, e.Entry.Text)
	case *page.EventJavascriptDialogOpening:
		p.dialogs = append(p.dialogs, e.Message)
		go chromedp.Call(p.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	}
}

// heard returns the requests, messages and dialogs of the page until now.
func (p *tab) heard() (requests, console, dialogs []string) {
	eval[bool](p, "true") // events come before the answer
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests, p.console, p.dialogs
}

// quiet fails the test if the page made a request, wrote a message or opened a dialog.
func (p *tab) quiet() {
	p.t.Helper()
	if requests, console, dialogs := p.heard(); len(requests)+len(console)+len(dialogs) > 0 {
		p.t.Errorf("the page asked for %q, said %q and showed the dialogs %q", requests, console, dialogs)
	}
}

// picture returns a screenshot of the element that a selector finds; see keep.
func (p *tab) picture(selector, name string) image.Image {
	p.t.Helper()
	data := do(p, chromedp.Screenshot(chromedp.CSS(selector)))
	keep(p.t, name+".png", data)
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		p.t.Fatal(err)
	}
	return img
}

// keepPicture keeps a screenshot of the whole page for people to look at; see keep.
func (p *tab) keepPicture(name string) {
	p.t.Helper()
	if os.Getenv(screenshots) != "" {
		keep(p.t, name+".png", do(p, chromedp.FullScreenshot(100)))
	}
}

// screenshots is the variable that names a folder in which the tests keep their screenshots.
const screenshots = "COMMQ_SCREENSHOTS"

// keep writes a file into the folder $COMMQ_SCREENSHOTS, if that is set.
func keep(t *testing.T, name string, data []byte) {
	t.Helper()
	if folder := os.Getenv(screenshots); folder != "" {
		if err := errors.Join(os.MkdirAll(folder, 0o755),
			os.WriteFile(filepath.Join(folder, name), data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// allow grants pages a permission for which a user would be asked.
func allow(t *testing.T, chromium context.Context, permission string) {
	t.Helper()
	_, err := chromedp.CallBrowser(chromium, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: permission}, Setting: browser.PermissionSettingGranted})
	if err != nil {
		t.Fatal(err)
	}
}
