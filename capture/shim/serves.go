package shim

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/commq/commq/capture/shim/abi"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
)

// loads reports whether commq brings the form of the shim that is wanted for an ABI, and whether the dynamic linker of
// this machine can preload it.
func (o *BuildOptions) loads(ctx context.Context, a abi.ABI) bool {
	path, err := o.bring(a)
	return err == nil && PreloadFails(ctx, path) == ""
}

// serves reports whether the shim that commq brings for an ABI can be preloaded and records whatever a compiled one
// would of the MPI library in a file.
func (o *BuildOptions) serves(ctx context.Context, a abi.ABI, library string) bool {
	return o.brings(a) == nil && lacking(a, library) == "" && o.loads(ctx, a)
}

// largeCount is a function with counts of type MPI_Count: where mpi.h is of MPI 4 a compiled shim has all of them.
const largeCount = "MPI_Send_c"

// servesHeader is serves for a program that does not tell its MPI library, by the mpi.h of a compiler wrapper.
func (o *BuildOptions) servesHeader(ctx context.Context, a abi.ABI, t *Target) bool {
	if o.brings(a) != nil {
		return false
	}
	has, err := wrappedBy(a)
	return err == nil && (t.standard < 4 || has[largeCount]) && o.loads(ctx, a)
}

// lacking names the functions of the MPI library in a file that commq records, but not with the shim that it brings for
// an ABI. It is empty if there are none, if no shim is brought, and if the library is not known.
func lacking(a abi.ABI, library string) string {
	wrapped, err := wrappedBy(a)
	if err != nil {
		return ""
	}
	has, err := functionsOf(library)
	if err != nil {
		return ""
	}
	var names []string
	for i := range schema.Calls {
		if c := &schema.Calls[i]; c.Recorder != "" && has[c.Name] && !wrapped[c.Name] {
			names = append(names, c.Name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0] + " of " + library
	}
	return fmt.Sprintf("%s and %s of %s", names[0], units.Count(int64(len(names)-1), "other function"), library)
}

// wrappedBy are the functions of MPI that the shim that commq brings for an ABI has wrappers for.
func wrappedBy(a abi.ABI) (map[string]bool, error) {
	data, err := prebuiltFile(a)
	if err != nil {
		return nil, err
	}
	x, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return functions(x)
}

// functionsOf are the functions of MPI that a shared library defines, by their names in C.
func functionsOf(file string) (map[string]bool, error) {
	x, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	return functions(x)
}

func functions(x *elf.File) (map[string]bool, error) {
	symbols, err := x.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && (strings.HasPrefix(s.Name, "MPI_") || strings.HasPrefix(s.Name, "MPIX_")) {
			names[s.Name] = true
		}
	}
	return names, nil
}

// PreloadFails returns what the dynamic linker says when it cannot preload a library: it goes on without it. Empty
// means that it can. What else is printed meanwhile does not count.
func PreloadFails(ctx context.Context, library string) string {
	program, err := exec.LookPath("true")
	if err != nil {
		program = "/bin/true"
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LD_DEBUG") }),
		"LD_PRELOAD="+library)
	out, err := cmd.CombinedOutput()
	// The dynamic linker splits the path at spaces and colons, and names the parts.
	parts := strings.FieldsFunc(library, func(r rune) bool { return r == ' ' || r == ':' })
	for line := range strings.Lines(string(out)) {
		for _, part := range parts {
			if strings.Contains(line, part) {
				return strings.TrimSpace(line)
			}
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
