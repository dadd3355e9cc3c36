package otf2

import (
	"context"
	"errors"
	"testing"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// imported imports an archive as a run that breaks no rule.
func imported(t testing.TB, path string, o Options) (*formatstest.Run, error) {
	t.Helper()
	r, err := importedBy(t, path, o)
	if errors.Is(err, timed.ErrLearn) {
		o.Learn = true
		r, err = importedBy(t, path, o)
	}
	return r, err
}

func importedBy(t testing.TB, path string, o Options) (*formatstest.Run, error) {
	t.Helper()
	return formatstest.Import(t, func(k *formatstest.Memory) (*schema.Manifest, error) {
		a, err := openArchive(path)
		if err != nil {
			return nil, err
		}
		j, err := newJob(a, o)
		if err != nil {
			return nil, err
		}
		return j.importTo(context.Background(), k)
	})
}
