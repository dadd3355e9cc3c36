// Package chrome drives a headless Chromium in tests.
package chrome

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

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/commq/commq/internal/testenv"
)

// Start starts a headless chromium without access to any host but this one, and ends it with the test.
func Start(t *testing.T) context.Context {
	t.Helper()
	testenv.Need(t, "chromium")
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.WSURLReadTimeout(testenv.Patience),
		chromedp.WindowSize(1280, 900),
		chromedp.Flag("hide-scrollbars", false),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	allocator, endAll := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		graceful, cancel := context.WithTimeout(ctx, testenv.Patience)
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

// Tab is a page in a browser, with its requests and messages.
type Tab struct {
	// T is the test.
	T *testing.T
	// Context is the one to run actions in.
	Context context.Context

	mu       sync.Mutex
	requests []string // addresses of all requests except those for the page itself and its data: URLs
	console  []string // messages, exceptions, and complaints of the browser
	dialogs  []string
}

// Look is how a page is shown: window size, theme and medium.
type Look struct {
	Width, Height int64
	Mobile, Dark  bool
	Media         string // print, or "" for the screen
}

// The usual looks.
var (
	Desktop = Look{Width: 1280, Height: 900}
	Dark    = Look{Width: 1280, Height: 900, Dark: true}
	Phone   = Look{Width: 390, Height: 844, Mobile: true}
	Paper   = Look{Width: 794, Height: 1123, Media: "print"} // A4
)

// Open opens an address in a new tab, which is closed with the test.
func Open(t *testing.T, chromium context.Context, address string, l Look) *Tab {
	t.Helper()
	p := &Tab{T: t}
	page, _, _ := strings.Cut(address, "#")
	ctx, closeTab := chromedp.NewContext(chromium, chromedp.WithListener(func(event any) { p.hear(event, page) }))
	t.Cleanup(closeTab)
	p.Context = ctx
	Do(p, chromedp.Title()) // the tab lives as long as the context of its first action, which therefore has no limit
	p.Show(l)
	Do(p, chromedp.Navigate(address))
	return p
}

// Do runs an action, which must succeed within testenv.Patience.
func Do[T any](p *Tab, a chromedp.Action[T]) T {
	p.T.Helper()
	ctx := p.Context
	if chromedp.FromContext(ctx).Target != nil {
		limited, cancel := context.WithTimeout(ctx, testenv.Patience)
		defer cancel()
		ctx = limited
	}
	result, err := chromedp.Run(ctx, a)
	if err != nil {
		p.T.Fatal(err)
	}
	return result
}

// Eval evaluates JavaScript in the page.
func Eval[T any](p *Tab, script string) T {
	p.T.Helper()
	return Do(p, chromedp.Evaluate[T](script))
}

func (p *Tab) Show(l Look) {
	p.T.Helper()
	var how []chromedp.EmulateViewportOption
	if l.Mobile {
		how = append(how, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulateScale(2))
	}
	Do(p, chromedp.EmulateViewport(l.Width, l.Height, how...))
	scheme := "light"
	if l.Dark {
		scheme = "dark"
	}
	media := emulation.SetEmulatedMediaParams{Media: l.Media,
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(p.Context, emulation.SetEmulatedMedia, media); err != nil {
		p.T.Fatal(err)
	}
}

// hear records every action of the page that a report must not do.
func (p *Tab) hear(event any, address string) {
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
		go chromedp.Call(p.Context, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	}
}

// Heard returns the requests, messages and dialogs of the page until now.
func (p *Tab) Heard() (requests, console, dialogs []string) {
	Eval[bool](p, "true") // events come before the answer
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests, p.console, p.dialogs
}

// Quiet fails the test if the page made a request, wrote a message or opened a dialog.
func (p *Tab) Quiet() {
	p.T.Helper()
	if requests, console, dialogs := p.Heard(); len(requests)+len(console)+len(dialogs) > 0 {
		p.T.Errorf("the page asked for %q, said %q and showed the dialogs %q", requests, console, dialogs)
	}
}

// Picture returns a screenshot of the element that a selector finds; see $COMMQ_SCREENSHOTS.
func (p *Tab) Picture(selector, name string) image.Image {
	p.T.Helper()
	data := Do(p, chromedp.Screenshot(chromedp.CSS(selector)))
	Keep(p.T, name+".png", data)
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		p.T.Fatal(err)
	}
	return img
}

// KeepPicture keeps a screenshot of the whole page for people to look at; see $COMMQ_SCREENSHOTS.
func (p *Tab) KeepPicture(name string) {
	p.T.Helper()
	if os.Getenv(screenshots) != "" {
		Keep(p.T, name+".png", Do(p, chromedp.FullScreenshot(100)))
	}
}

// screenshots is the variable that names a folder in which the tests keep their screenshots.
const screenshots = "COMMQ_SCREENSHOTS"

// Keep writes a file into the folder $COMMQ_SCREENSHOTS, if that is set.
func Keep(t *testing.T, name string, data []byte) {
	t.Helper()
	if folder := os.Getenv(screenshots); folder != "" {
		if err := errors.Join(os.MkdirAll(folder, 0o755),
			os.WriteFile(filepath.Join(folder, name), data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// Allow grants pages a permission for which a user would be asked.
func Allow(t *testing.T, chromium context.Context, permission string) {
	t.Helper()
	_, err := chromedp.CallBrowser(chromium, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: permission}, Setting: browser.PermissionSettingGranted})
	if err != nil {
		t.Fatal(err)
	}
}
