package writer

import (
	"context"

	"github.com/commq/commq/internal/filehash"
	"github.com/commq/commq/schema"
)

// verifyFile compares a file of the run in folder dir with its size and hash in the manifest.
func verifyFile(dir string, f *schema.FileInfo) error {
	return filehash.File(dir, f.Path, f.Bytes, f.Sum)
}

// VerifyRun compares all files of the run in folder dir with their sizes and hashes in the manifest.
func VerifyRun(ctx context.Context, dir string) error {
	m, err := ReadManifest(dir)
	if err != nil {
		return err
	}
	return verifyRun(ctx, dir, m)
}

func verifyRun(ctx context.Context, dir string, m *schema.Manifest) error {
	for i := range m.Tables {
		for k := range m.Tables[i].Files {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := verifyFile(dir, &m.Tables[i].Files[k]); err != nil {
				return err
			}
		}
	}
	return nil
}
