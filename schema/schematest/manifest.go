package schematest

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/commq/commq/schema"
)

// SealManifest gives the manifest in a file, which a test has changed, the digest and the hash that fit it. Of one that
// cannot be read the hash is removed.
func SealManifest(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return nil
	}
	delete(fields, "sum")
	if text, err = json.Marshal(fields); err != nil {
		return err
	}
	if m, err := schema.ParseManifest(text); err == nil {
		m.Digest = DigestOf(m)
		if text, err = m.Text(); err != nil {
			return err
		}
	}
	return os.WriteFile(file, text, 0o644)
}

// DigestOf returns the digest that fits a manifest, which a test has changed.
func DigestOf(m *schema.Manifest) string {
	h := m.Identity()
	return fmt.Sprintf("%016x%016x", h.Hi, h.Lo)
}
