package shim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/commq/commq/capture/shim/abi"
	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/internal/disk"
)

// NoMpicc as the name of a compiler wrapper stands for no compiling: the shim is one that commq brings.
const NoMpicc = "none"

// errNoPrebuilt means that this commq was built without shims.
var errNoPrebuilt = errors.New("this commq brings no capture library (releases do), so it has to compile one")

// Prebuilt lists the ABIs that this commq brings a shim for: all in a release, else none.
func Prebuilt() []abi.ABI {
	var there []abi.ABI
	for _, a := range abi.All {
		if _, err := prebuiltFile(a); err == nil {
			there = append(there, a)
		}
	}
	return there
}

// prebuilt holds the shims that commq brings; tests put others in.
var prebuilt fs.ReadFileFS = released

// prebuiltFile returns the shim for an ABI. Its name has the key of the sources that it was compiled from.
func prebuiltFile(a abi.ABI) ([]byte, error) {
	key, err := sourceKey()
	if err != nil {
		return nil, err
	}
	data, err := prebuilt.ReadFile(prebuiltFolder + "/" + a.Name + "-" + key + ".so")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoPrebuilt
	}
	return data, err
}

// sourceKey is the key of the embedded sources, as scripts/release makes it too.
func sourceKey() (string, error) {
	names, files, err := sourceFiles()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, n := range names {
		h.Write(files[n])
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// brings returns nil if commq brings the form of the shim that is wanted for an ABI, else why not.
func (o *BuildOptions) brings(a abi.ABI) error {
	if o.Form != Recording {
		return fmt.Errorf("%s has to be compiled, commq brings none", o.Form.title())
	}
	_, err := prebuiltFile(a)
	return err
}

// bring returns the path of the shim that commq brings for an ABI. It is written to the cache, because the dynamic
// linker loads files.
func (o *BuildOptions) bring(a abi.ABI) (string, error) {
	if err := o.brings(a); err != nil {
		return "", err
	}
	data, err := prebuiltFile(a)
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder(o.Cache)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	folder := filepath.Join(cache, "shim", a.Name+"-"+hex.EncodeToString(sum[:])[:16])
	path := filepath.Join(folder, o.Form.file())
	there, err := cached(folder, path)
	if err != nil {
		return path, err
	}
	if there {
		if found, err := bounded.ReadRegular(path, int64(len(data))); err == nil && bytes.Equal(found, data) {
			return path, nil
		}
	}
	f, err := disk.CreateTemp(folder, ".shim-", 0o600)
	if err != nil {
		return "", fmt.Errorf("write the shim: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(0o755), f.Sync(), f.Close()); err != nil { // a crash leaves all of it or none
		return "", fmt.Errorf("write the shim: %w", err)
	}
	return path, disk.Rename(f.Name(), path)
}
