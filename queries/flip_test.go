package queries_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
	"github.com/commq/commq/writer"
)

// answersOf asks for every value of two tables and of the view runs.
func answersOf(t *testing.T, r queries.Run, o queries.Options) (string, error) {
	t.Helper()
	db, err := queries.Open(context.Background(), []queries.Run{r}, o)
	if err != nil {
		return "", err
	}
	defer db.Close()
	all := ""
	for _, table := range []string{"events", "messages"} {
		rows, err := db.Query(context.Background(), "SELECT sum(hash(x)) AS h, count(*) AS n FROM "+table+" AS x")
		if err != nil {
			return "", err
		}
		for rows.Next() {
			all += fmt.Sprint(rows.Row(), " ")
		}
		if err := rows.Close(); err != nil {
			return "", err
		}
	}
	return all, nil
}

// TestFlippedBitsAreErrors flips bits of the files of a run. Each is an error: of a small file the hash tells. Without
// it, as in a file that is too large, the hashes of the footer and of the headers of pages do, or the checksum of a page.
func TestFlippedBitsAreErrors(t *testing.T) {
	store := t.TempDir()
	out, err := writer.Create(store, "tiny", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range schematest.ParseRows(t, schematest.TinyRun) {
		if !b.Table().Derived {
			if err := out.Write(0, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	m := schematest.TinyManifest()
	if err := out.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	r := queries.Run{Name: "tiny", Dir: filepath.Join(store, "tiny"), Manifest: m}
	o := queries.Options{Threads: 1}
	large := r
	large.Manifest = withoutHashes(t, r.Dir)
	want, err := answersOf(t, r, o)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	counts := map[string]int{}
	for _, table := range []*schema.Table{&schema.EventsTable, &schema.MessagesTable} {
		path := filepath.Join(r.Dir, table.Name, "0000.parquet")
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range flips() {
			bit := random.IntN(8 * len(whole))
			data := append([]byte(nil), whole...)
			data[bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := answersOf(t, r, o); err == nil {
				t.Errorf("%s: byte %d, bit %d: no error", table.Name, bit/8, bit%8)
			}
			got, err := answersOf(t, large, o)
			switch {
			case err != nil:
				counts["error"]++
			case got == want:
				counts["right"]++
			default:
				t.Errorf("%s: byte %d of %d, bit %d: another answer", table.Name, bit/8, len(whole), bit%8)
			}
			if _, err := answersOf(t, r, queries.Options{Threads: 1, Verify: true}); err == nil {
				t.Errorf("%s: byte %d, bit %d: no error with Verify", table.Name, bit/8, bit%8)
			}
		}
		if err := os.WriteFile(path, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%v", counts)
	if counts["right"] > counts["error"]/10 { // of bits that nothing reads
		t.Errorf("without the hashes of files: %v", counts)
	}
}

// TestFlippedBitsOfManifests flips bits of a manifest. Each is an error, or the answers are the same. Without its hash, as
// in runs of older commqs, this holds for what the digest covers: all but the origin.
func TestFlippedBitsOfManifests(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := newRun(t, "pp.5", world+pingpong, example.Manifest(5))
	file := filepath.Join(r.Dir, "manifest.json")
	answers := func(columns string) string {
		m, err := writer.ReadManifest(r.Dir)
		if err != nil {
			return "error"
		}
		db, err := queries.Open(t.Context(), []queries.Run{{Name: r.Name, Dir: r.Dir, Manifest: m}}, queries.Options{Threads: 1})
		if err != nil {
			return "error"
		}
		defer db.Close()
		rows, err := db.Query(t.Context(), "SELECT "+columns+" FROM runs")
		if err != nil {
			return "error"
		}
		return text(t, rows, err)
	}
	for _, c := range []struct {
		what, columns string
		change        func(*schema.Manifest)
	}{
		{"hashed", "*", func(*schema.Manifest) {}},
		{"of an older commq", "* EXCLUDE (label, command, mpi, started)", func(m *schema.Manifest) { m.Sum = "" }},
	} {
		m := *r.Manifest
		c.change(&m)
		whole, err := m.Text()
		if m.Sum = ""; c.what != "hashed" {
			whole, err = json.MarshalIndent(&m, "", "  ")
		}
		if err != nil {
			t.Fatal(err)
		}
		flip := func(bit int) {
			data := slices.Clone(whole)
			if bit >= 0 {
				data[bit/8] ^= 1 << (bit % 8)
			}
			if err := os.WriteFile(file, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		flip(-1)
		want, errs := answers(c.columns), 0
		for range 3 * flips() {
			bit := random.IntN(8 * len(whole))
			flip(bit)
			switch got := answers(c.columns); got {
			case "error":
				errs++
			case want:
			default:
				t.Errorf("%s: byte %d, bit %d: another answer: %s", c.what, bit/8, bit%8, got)
			}
		}
		if want == "error" || errs == 0 {
			t.Errorf("%s: %d errors; unchanged: %s", c.what, errs, want)
		}
	}
}

// withoutHashes returns the manifest of a run without the hashes of its files, but with those of their footers.
func withoutHashes(t *testing.T, dir string) *schema.Manifest {
	t.Helper()
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Tables {
		for k := range m.Tables[i].Files {
			m.Tables[i].Files[k].Sum = ""
		}
	}
	return m
}

// flips is the number of flips per table.
func flips() int {
	n := 60
	_, _ = fmt.Sscan(os.Getenv("COMMQ_TEST_FLIPS"), &n)
	return n
}
