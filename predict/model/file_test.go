package model_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/predict"
	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
)

// ringModel makes a model of a ring on 3, 4, 5 and 7 ranks, and its file.
func ringModel(t testing.TB) (*model.Model, string) {
	t.Helper()
	var runs []*signature.Signature
	for _, ranks := range []int{3, 4, 5, 7} {
		s, _, err := predict.Sign(testruns.Sends(ranks, 2,
			func(r, i int) (int, int) { return (r + 1) % ranks, 4097 * (i + 1) }))
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, s)
	}
	m, err := model.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return m, b.String()
}

// A model made from its file is the model that was written.
func TestWriteAndRead(t *testing.T) {
	m, text := ringModel(t)
	again, err := model.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m.Laws(), again.Laws()); d != "" {
		t.Errorf("laws (-want +got):\n%s", d)
	}
	var b bytes.Buffer
	if err := again.Write(&b); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(text, b.String()); d != "" {
		t.Errorf("written again (-before +after):\n%s", d)
	}
	x, err := generate.Predict(t.Context(), again, 35, generate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := report.NewTotals(again, x); got.Messages != (report.Bounded{Value: 70, Low: 70, High: 70}) ||
		got.Bytes != (report.Bounded{Value: 35 * 3 * 4097, Low: 35 * 3 * 4097, High: 35 * 3 * 4097}) {
		t.Errorf("%+v, want 70 messages with %d bytes", got, 35*3*4097)
	}
	want := "rank 3 sends 2 messages with tag 9 on communicator 0 to rank 4, which receives 0"
	if len(x.Unmatched) != 35 || x.Unmatched[3] != want {
		t.Errorf("unmatched: %q, the fourth should be %q", x.Unmatched, want)
	}
}

// The error tells what is wrong with a file, and where.
func TestReadErrors(t *testing.T) {
	_, text := ringModel(t)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "not models of commq fit: line 1, column 1: unexpected end of JSON input"},
		{"a signature", `{"commq_signature":1}`, "it has no commq_models"},
		{"another version", strings.Replace(text, `"commq_models":8`, `"commq_models":9`, 1),
			"commq_models 9: this commq reads 8"},
		{"changed", strings.Replace(text, `"warnings":[`, `"warnings":[ `, 1),
			"the file was changed after commq fit wrote it"},
		{"cut off", text[:len(text)/2], "unexpected end of JSON input"},
		{"more behind it", text + "{}", "invalid character '{' after top-level value"},
		{"unknown field", sealed(strings.Replace(text, `"laws":`, `"lows":`, 1)), `line 2, column`},
		{"a number that is text", sealed(strings.Replace(text, `"ticks":`, `"ticks":"x","tocks":`, 1)),
			"cannot unmarshal string"},
		{"a run that is missing", sealed("{\"commq_models\":8,\"digest\":\"\",\n\"training\":[null]}"),
			"run 1 of 1 is missing"},
		{"roots of another run", sealed(strings.Replace(text, `"roots":[0,`, `"roots":[9,`, 1)), `rank 0: root 9 of`},
		{"a law that is missing", sealed(strings.Replace(text, `"root":-1`, `"root":99`, 1)), `there is no law 99`},
		{"sites of another program", sealed(strings.Replace(text, `{"event":1,`, `{"event":2,`, 1)),
			`another version of commq found its laws`},
	} {
		_, err := model.Read(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// TestDamagedSides replaces each side of each call in a file by others. The file is refused, or gives a model that can
// be used: nothing panics.
func TestDamagedSides(t *testing.T) {
	var runs []*signature.Signature
	for _, ranks := range []int{3, 4, 5} {
		s, _, err := predict.Sign(testruns.Steps(ranks, func(r int) []testruns.Step {
			to := testruns.Message{To: (r + 1) % ranks, Tag: 9, Bytes: 4097, Site: 1}
			from := testruns.Message{To: (r + ranks - 1) % ranks, Tag: 9, Bytes: 4097, Site: 2}
			return []testruns.Step{{Message: to}, {Message: from, Receives: true}, {Message: to}}
		}))
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, s)
	}
	m, err := model.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	sides := regexp.MustCompile(`"(send|recv)":\[[^]]*\]`).FindAllStringIndex(text, -1)
	if len(sides) < 9 {
		t.Fatalf("%d sides in %s", len(sides), text)
	}
	read := 0
	for _, at := range sides {
		for _, value := range []string{"[]", "null", "[1]", "[1,9,1,5,4097]", "[null,9,1,5,4097,1]", "[0,0,0,0,0,0,0]"} {
			damaged := text[:at[0]] + text[at[0]:at[0]+5] + `":` + value + text[at[1]:]
			m, err := model.Read(strings.NewReader(sealed(damaged)))
			if err != nil {
				continue
			}
			read++
			_, _ = generate.Predict(t.Context(), m, 6, generate.Options{})
		}
	}
	if read < 2*len(sides) {
		t.Errorf("%d of %d damaged files were read", read, 6*len(sides))
	}
}

// sealed gives a text the digest that it should have.
func sealed(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return fmt.Sprintf("{\"commq_models\":8,\"digest\":\"%x\",\n%s", sha256.Sum256([]byte(rest)), rest)
}

// TestCollectivesAreCounted: a collective call without its number would give runs that fail their own check.
func TestCollectivesAreCounted(t *testing.T) {
	in, err := gzip.NewReader(bytes.NewReader(mustRead(t, "../../testdata/signatures/is.W.4.json.gz")))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := signature.Read(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(text, []byte(`,"instance":true`), nil, 1)
	if _, err := signature.Read(bytes.NewReader(damaged)); err == nil || !strings.Contains(err.Error(), "(instance)") {
		t.Errorf("%v", err)
	}
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A file that can be read gives a model that can be written again and used, or an error.
func FuzzRead(f *testing.F) {
	_, text := ringModel(f)
	f.Add(text)
	f.Add(`{"commq_models":8,"laws":[],"training":[]}`)
	f.Fuzz(fuzzRead)
}

func fuzzRead(t *testing.T, text string) {
	m, err := model.Read(strings.NewReader(sealed(text)))
	if err != nil {
		return
	}
	calls := int64(0)
	for _, s := range m.Runs() {
		if calls += s.Calls + int64(s.Ranks); calls > 1<<12 {
			return
		}
	}
	if err := m.Write(&bytes.Buffer{}); err != nil {
		t.Error(err)
	}
	_, _ = generate.Predict(t.Context(), m, 6, generate.Options{})
}

// The same with a good file, its values changed.
func FuzzReadEdited(f *testing.F) {
	_, text := ringModel(f)
	f.Add([]byte{0, 9, 1, 8, 1, 0, 4, 7})
	f.Fuzz(func(t *testing.T, edits []byte) { fuzzRead(t, mutate.JSON(text, edits)) })
}
