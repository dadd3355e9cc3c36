package run

import (
	"fmt"
	"path/filepath"

	"github.com/commq/commq/writer"
)

// All finds the runs of a store, in the order of their names; folders are absolute. Runs whose manifests cannot be read
// are given to leftOut. A store without a run is an error.
func All(store string, leftOut func(error)) ([]Found, error) {
	infos, err := writer.List(store)
	if err != nil {
		return nil, err
	}
	var runs []Found
	for _, info := range infos {
		if info.Err != nil {
			leftOut(info.Err)
			continue
		}
		dir, err := filepath.Abs(info.Dir)
		if err != nil {
			return nil, err
		}
		runs = append(runs, Found{Name: filepath.Base(dir), Dir: dir, Manifest: info.Manifest})
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("the store %s has no runs; name it with --store", store)
	}
	return runs, nil
}
