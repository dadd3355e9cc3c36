// Package bounded reads inputs of strangers without trusting their length: a small compressed file can unpack to more
// than the memory of the machine.
package bounded

import (
	"fmt"
	"io"
	"os"

	"github.com/commq/commq/internal/units"
)

// TextBytes is the most that is read of a file of text that may be long: signatures, models, findings.
const TextBytes = 256 << 20

// plainTimes is how many times as much is read of a regular file: it takes as much on the disk, unless it has holes,
// and who has large runs has large files.
const plainTimes = 16

// ReadAll reads r to its end. More than most bytes are an error, which says how many are read; of a regular file, more
// than 16 times as many.
func ReadAll(r io.Reader, most int64) ([]byte, error) {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			most *= plainTimes
		}
	}
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("more than %s of text; at most that is read", units.Bytes(most))
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}

// ReadFile reads a file as ReadAll does. Its error names the file.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := ReadAll(f, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}
