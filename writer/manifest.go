package writer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/schema"
)

// ReadManifest reads and validates the manifest of the run in folder dir.
func ReadManifest(dir string) (*schema.Manifest, error) {
	name := filepath.Join(dir, manifestName)
	f, _, err := bounded.OpenRegular(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a run: it has no %s", dir, manifestName)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, schema.MaxManifestBytes+1))
	if err != nil {
		return nil, err
	}
	m, err := schema.ParseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// completeManifest does the same as ReadManifest, but returns nil for a folder without a manifest: a run that is being
// written or removed.
func completeManifest(dir string) (*schema.Manifest, error) {
	if _, err := os.Stat(filepath.Join(dir, manifestName)); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return ReadManifest(dir)
}

// writeManifest sets the manifest's Sum, writes it as that of the run in folder dir and syncs it.
func writeManifest(dir string, m *schema.Manifest) error {
	text, err := m.Text()
	if err != nil {
		return err
	}
	f, err := disk.Create(filepath.Join(dir, manifestName))
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}
