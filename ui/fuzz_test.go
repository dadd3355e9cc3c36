package ui_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/commq/commq/ui"
)

// FuzzRequests asks a server for any address, with the secret: it answers, or refuses the request as a mistake.
func FuzzRequests(f *testing.F) {
	o := options(f, "mg.W.2", "pingpong.2")
	o.Timeout = 2 * time.Second
	s, err := ui.New(o)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() }) // the fuzzer may stop a question
	for _, path := range []string{"/api/runs", "/api/facts?run=mg.W.2", "/api/queries", "/api/machines",
		"/api/ask/density?run=mg.W.2&limit=3", "/api/text/density?run=mg.W.2&where=src%3D0",
		"/api/ask/activity?run=mg.W.2&order=any",
		"/api/whatif?run=mg.W.2&machine=flat&set=latency_ns%3D9", "/api/predicted?run=pingpong.2&machine=flat",
		"/api/path?run=mg.W.2&from-ns=1&to-ns=9", "/api/diagnose?run=mg.W.2", "/../x?%zz", "/?token=x"} {
		f.Add(path, "")
	}
	f.Add("/api/sql?run=mg.W.2&limit=2", "SELECT count(*) FROM events")
	f.Add("/api/own?run=mg.W.2&name=a.sql", "-- summary: x\nSELECT 1")
	f.Fuzz(func(t *testing.T, address, body string) {
		u, err := url.ParseRequestURI(address)
		if err != nil || u.Host != "" || !utf8.ValidString(u.Path) { // the library has no files with such names
			return
		}
		method := http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		r := httptest.NewRequest(method, "http://127.0.0.1/", strings.NewReader(body))
		r.URL, r.RequestURI = u, address
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != http.StatusGatewayTimeout {
			t.Errorf("%s: status %d: %.200s", address, w.Code, w.Body)
		}
	})
}
