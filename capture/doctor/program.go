package doctor

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/internal/units"
)

// Program checks whether a program can be captured: its MPI library, the functions it calls, other tools around it.
func Program(ctx context.Context, path string) ([]Finding, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	library, err := shim.Detect(abs)
	if err != nil {
		text, do, _ := strings.Cut(strings.TrimPrefix(err.Error(), "detect the MPI library of "+abs+": "), "; ")
		do = cmp.Or(do, "name an executable file that you may read")
		return append([]Finding{failure("MPI library", do, "%s", text)}, preloaded()...), nil
	}
	var list []Finding
	choice, err := shim.Choose(ctx, shim.BuildOptions{Library: library, Program: abs})
	switch {
	case err != nil:
		list = append(list, failure("MPI library", "the capture library must be compiled for it, once: "+err.Error(),
			"%s, but its compiler wrapper is not here", library))
	case choice.Target == nil:
		list = append(list, broughtLibrary(ctx, library, abs, choice))
	case choice.Note != "":
		list = append(list, warning("MPI library", "load the MPI library that the program was built with, or capture with "+
			"--mpicc and its compiler wrapper", "%s: %s", library, choice.Note))
	default:
		list = append(list, ok("MPI library", "%s; %s has version %s", library, choice.Target.Mpicc, choice.Target.Version))
	}
	list = append(list, functions(abs)...)
	return append(list, preloaded()...), nil
}

// functions checks the functions of MPI that a program calls, by the symbols it imports.
func functions(path string) []Finding {
	im, err := shim.ReadImports(path)
	if err != nil {
		return []Finding{warning("functions", "name the binary that calls MPI", "the imports of %s cannot be read: %v",
			path, err)}
	}
	var list []Finding
	if len(im.Missing) > 0 {
		list = append(list, failure("libraries",
			"set LD_LIBRARY_PATH, or load the modules that the program was built with", "not found: %s",
			strings.Join(im.Missing, ", ")))
	}
	if len(im.Calls) == 0 {
		return append(list, warning("functions",
			"if it loads MPI later or starts other programs, doctor cannot see what they call",
			"%s calls no function of MPI itself", filepath.Base(path)))
	}
	list = append(list, ok("languages", "%s", strings.Join(im.Languages, ", ")))
	calls := units.Count(int64(len(im.Calls)), "function")
	if names := im.Unrecorded(); len(names) > 0 {
		list = append(list, warning("functions", "the program runs as without commq; the time in them counts as "+
			"compute time, and their communication is in no table", "%s of MPI called, of which not recorded: %s",
			calls, strings.Join(names, ", ")))
	} else {
		list = append(list, ok("functions", "%s of MPI called; all that communicate are recorded", calls))
	}
	for _, w := range im.Wrappers {
		list = append(list, warning("other tools", chained, "%s also wraps MPI", w))
	}
	if s := shim.Sanitizers(path); len(s) > 0 {
		list = append(list, ok("sanitizer", "%s comes before the capture library in LD_PRELOAD; times include what it costs",
			strings.Join(s, ", ")))
	}
	return list
}

// chained says what becomes of another tool that wraps MPI.
const chained = "it works as without commq: calls go on to it, and the times of calls include what it takes; " +
	"capture without it for times of MPI alone"

// preloaded checks $LD_PRELOAD for libraries that wrap MPI.
func preloaded() (list []Finding) {
	paths := strings.FieldsFunc(os.Getenv("LD_PRELOAD"), func(r rune) bool { return r == ':' || r == ' ' })
	for _, path := range paths {
		switch {
		case filepath.Base(path) == "libcommq.so":
			list = append(list, warning("preload",
				"unset LD_PRELOAD before commq capture, or use commq ingest after the run",
				"$LD_PRELOAD has the capture library already (commq exec --print-env): all MPI programs of "+
					"this shell record themselves"))
		case shim.WrapsMPI(path):
			list = append(list, warning("preload", chained, "$LD_PRELOAD has %s, which also wraps MPI", path))
		}
	}
	return list
}
