package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
)

// TestChangedManifests: a manifest that was changed is an error, until its field sum is removed.
func TestChangedManifests(t *testing.T) {
	m := sealed(t)
	text, err := m.Text()
	if err != nil {
		t.Fatal(err)
	}
	if read, err := schema.ParseManifest(text); err != nil || !cmp.Equal(read, m) {
		t.Errorf("%v; differs:\n%s", err, cmp.Diff(m, read))
	}
	unsummed := *m
	unsummed.Sum = ""
	old, err := json.Marshal(&unsummed)
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, text, want string }{
		{"another value", strings.Replace(string(text), `"commq": ""`, `"commq": "1"`, 1),
			`and its field "sum" says ` + m.Sum + "; it was changed after commq wrote it: copy the run again or capture it " +
				`again; if you changed it on purpose, remove its field "sum"`},
		{"another sum", strings.Replace(string(text), m.Sum, strings.Repeat("0", 16), 1), "its hash is " + m.Sum},
		{"no sum of commq", strings.Replace(string(text), m.Sum, `\"`, 1), `its field "sum" says "`},
		{"other spaces", compact.String(), `the field "sum" is not the last line as commq writes it`},
		{"without the field", string(old), ""},
	} {
		_, err := schema.ParseManifest([]byte(c.text))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", c.what, err, c.want)
		}
	}
	if m.Summed().Sum != "" {
		t.Error("the manifest for a server has the hash of another text")
	}
}

// The digest tells of a changed value in a manifest without a hash, too.
func TestCompareDigest(t *testing.T) {
	m := sealed(t)
	if err := m.CompareDigest(); err != nil {
		t.Error(err)
	}
	m.EndNs++
	if err := m.CompareDigest(); err == nil || !strings.Contains(err.Error(), "says that its digest is "+m.Digest) {
		t.Error(err)
	}
}

// sealed returns a manifest with its tables and digest.
func sealed(t *testing.T) *schema.Manifest {
	t.Helper()
	m := schematest.TinyManifest()
	for _, table := range schema.Tables() {
		m.Tables = append(m.Tables, schema.TableInfo{Name: table.Name, Digest: strings.Repeat("0", 32),
			Files: []schema.FileInfo{{Path: table.FilePath(0)}}})
	}
	h := m.Identity()
	m.Digest = fmt.Sprintf("%016x%016x", h.Hi, h.Lo)
	return m
}
