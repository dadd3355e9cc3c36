package training

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/predict/signature"
)

const signatures = "../../testdata/signatures"

func TestSignAllReadsFilesInOrderOfRanks(t *testing.T) {
	var calls []int
	all, err := SignAll(t.Context(), t.TempDir(),
		[]string{filepath.Join(signatures, "is.W.16.json.gz"), filepath.Join(signatures, "is.W.[48].json.gz")},
		Watch{Progress: func(done, total int) { calls = append(calls, done, total) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 || all[0].Ranks != 4 || all[1].Ranks != 8 || all[2].Ranks != 16 {
		t.Errorf("%d signatures", len(all))
	}
	if len(calls) != 6 || calls[4] != 3 || calls[5] != 3 {
		t.Errorf("progress %v", calls)
	}
}

func TestSignAllNamesWhatIsMissing(t *testing.T) {
	store := t.TempDir()
	broken := filepath.Join(store, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]string{
		"missing.json": "missing.json: no such file; commq export signature --run RUN -o FILE makes it",
		"missing.4":    `no run "missing.4"`,
		broken:         broken,
	} {
		_, err := SignAll(t.Context(), store, []string{pattern}, Watch{Progress: func(int, int) {}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", pattern, err, want)
		}
	}
}

// Paths of the machine that captured a run are of no use to others; -ffile-prefix-map=$PWD=/src leaves them out.
func TestSignaturesOfTestdataNameNoFolderOfAMachine(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(signatures, "*.json.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d signatures, %v", len(paths), err)
	}
	absolute := regexp.MustCompile(`"file":"(/[^"]*)`)
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		in, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range absolute.FindAllSubmatch(text, -1) {
			if !strings.HasPrefix(string(m[1]), "/src/") {
				t.Errorf("%s names %s", filepath.Base(path), m[1])
				break
			}
		}
	}
}

func TestFilesAreCompressedByTheirNames(t *testing.T) {
	s, err := ReadFile(filepath.Join(signatures, "is.W.4.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plain.json", "packed.json.gz"} {
		path := filepath.Join(t.TempDir(), name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(Compressed(path, s.Write)(f), f.Close()); err != nil {
			t.Fatal(err)
		}
		again, err := ReadFile(path)
		if err != nil || again.Ranks != s.Ranks || again.Calls != s.Calls {
			t.Errorf("%s: %+v, %v", name, again, err)
		}
	}
}

// A computation that never ends does not keep its caller.
func TestAwaitEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	forever := make(chan struct{})
	defer close(forever)
	if _, err := Await(ctx, func() (*signature.Signature, error) { <-forever; return nil, nil }); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if n, err := Await(t.Context(), func() (int, error) { return 97, nil }); n != 97 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// FuzzReadFile reads files of training, compressed by their name: as a signature and as models.
func FuzzReadFile(f *testing.F) {
	packed, err := os.ReadFile(filepath.Join(signatures, "is.W.4.json.gz"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed, true)
	f.Add(packed[:len(packed)/2], true)
	f.Add(packed, false)
	f.Add([]byte(`{"commq_signature":1,"ranks":1,"roots":[0]}`), false)
	f.Fuzz(func(t *testing.T, data []byte, isPacked bool) {
		file := filepath.Join(t.TempDir(), "x.json")
		if isPacked {
			file += ".gz"
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := FindFiles(file); err != nil || len(found) != 1 {
			t.Errorf("%q, %v", found, err)
		}
		if s, err := ReadFile(file); err == nil && s.Ranks < 1 {
			t.Errorf("a signature of %d ranks", s.Ranks)
		}
		_, _ = ReadModels(file, nil)
	})
}

// TestFilesThatUnpackToMuchAreRefused reads compressed files of 260 kB that unpack to more than is read of a file, as a
// signature and as models.
func TestFilesThatUnpackToMuchAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bomb.json.gz")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	blanks := bytes.Repeat([]byte(" "), 1<<20)
	for range bounded.TextBytes>>20 + 1 {
		if _, err := z.Write(blanks); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	const want = "bomb.json.gz: more than 268 MB of text"
	if _, err := ReadFile(file); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("as a signature: %v", err)
	}
	if _, err := ReadModels(file, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("as models: %v", err)
	}
}
