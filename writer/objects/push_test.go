package objects

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeS3 keeps what is put, by path, and answers that no other object exists. It sets the environment for Open.
func fakeS3(t *testing.T) (put map[string][]byte) {
	t.Helper()
	put = map[string][]byte{}
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodPut:
			put[r.URL.Path] = body
			w.Header().Set("ETag", `"1"`)
		case r.URL.Query().Has("list-type"):
			_, _ = io.WriteString(w, `<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>`)
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		case put[r.URL.Path] != nil:
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Last-Modified", "Sun, 10 Dec 1815 12:00:00 GMT")
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(put[r.URL.Path]))
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `<Error><Code>NoSuchKey</Code></Error>`)
		}
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ENDPOINT_URL_S3": "",
		"AWS_REGION":        "us-east-1",
		"AWS_ACCESS_KEY_ID": "ada", "AWS_SECRET_ACCESS_KEY": "a secret of 1843", "AWS_SESSION_TOKEN": ""} {
		t.Setenv(name, value)
	}
	return put
}

// TestPushFollowsNoLinkOutOfTheRun pushes a run in which somebody has replaced a file, a folder or the manifest by a
// link to a file that is not the run's.
func TestPushFollowsNoLinkOutOfTheRun(t *testing.T) {
	const table = "ranks/0000.parquet"
	for _, linked := range []string{"", table, "ranks", manifestName} {
		put := fakeS3(t)
		run := filepath.Join(t.TempDir(), "rma.3")
		if err := os.CopyFS(run, os.DirFS("../../testdata/runs/rma.3")); err != nil {
			t.Fatal(err)
		}
		if linked != "" {
			private := filepath.Join(t.TempDir(), "private")
			if err := os.Rename(filepath.Join(run, linked), private); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(private, filepath.Join(run, linked)); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open("s3://jobs/x")
		if err != nil {
			t.Fatal(err)
		}
		pushed, err := s.Push(t.Context(), run, "rma.3", false)
		if linked == "" {
			if err != nil || !pushed || !bytes.Contains(put["/jobs/x/rma.3/"+table], []byte("PAR1")) ||
				len(put["/jobs/x/rma.3/"+manifestName]) == 0 {
				t.Errorf("without a link: %v %v, %d objects", pushed, err, len(put))
			}
			continue
		}
		if err == nil || pushed || !strings.Contains(err.Error(), "path escapes") {
			t.Errorf("%s is a link: pushed %v, %v", linked, pushed, err)
		}
		if len(put["/jobs/x/rma.3/"+table])+len(put["/jobs/x/rma.3/"+manifestName]) > 0 && linked != manifestName {
			t.Errorf("%s is a link: what it points to was put", linked)
		}
	}
}
