package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/commq/commq/capture/shim"
)

// program checks whether a program can be captured.
func (c *checkup) program(ctx context.Context, path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	library, err := shim.Detect(abs)
	if err != nil {
		text, do, _ := strings.Cut(strings.TrimPrefix(err.Error(), "detect the MPI library of "+abs+": "), "; ")
		c.fail("MPI library", do, "%s", text)
		c.preloaded()
		return nil
	}
	if target, err := shim.FindTarget(ctx, library, ""); err != nil {
		c.fail("MPI library", "the capture library must be compiled for it, once: "+err.Error(), "%s, without a compiler wrapper here", library)
	} else {
		c.ok("MPI library", "%s; %s is of version %s", library, target.Mpicc, target.Version)
	}
	c.functions(ctx, abs)
	c.preloaded()
	return nil
}

// functions checks what a program calls.
func (c *checkup) functions(_ context.Context, path string) {
	im, err := shim.ReadImports(path)
	if err != nil {
		c.warn("functions", "name the binary that calls MPI", "what %s calls cannot be read: %v", path, err)
		return
	}
	if len(im.Missing) > 0 {
		c.fail("libraries", "set LD_LIBRARY_PATH, or load the modules that the program was built with", "not found: %s", strings.Join(im.Missing, ", "))
	}
	if len(im.Calls) == 0 {
		c.warn("functions", "where it loads MPI later or starts other programs, doctor cannot see what they call", "%s calls no function of MPI itself", filepath.Base(path))
		return
	}
	c.ok("languages", "%s", strings.Join(im.Languages, ", "))
	if names := im.Unrecorded(); len(names) > 0 {
		c.warn("functions", "the program runs on as without commq; the time in them counts as compute time, and what they communicate is in no table",
			"%s of MPI called, of which not recorded: %s", counted(int64(len(im.Calls)), "function"), strings.Join(names, ", "))
	} else {
		c.ok("functions", "%s of MPI called; all that communicate are recorded", counted(int64(len(im.Calls)), "function"))
	}
	for _, w := range im.Wrappers {
		c.warn("other tools", "times then include that tool's own; link the program without it", "%s wraps MPI as well", w)
	}
}

// preloaded looks at $LD_PRELOAD.
func (c *checkup) preloaded() {
	list := strings.FieldsFunc(os.Getenv("LD_PRELOAD"), func(r rune) bool { return r == ':' || r == ' ' })
	for _, path := range list {
		switch {
		case filepath.Base(path) == "libcommq.so":
			c.warn("preload", "unset LD_PRELOAD before commq capture, or use commq ingest after the run", "$LD_PRELOAD has the capture library already (commq env): all MPI programs of this shell record themselves")
		case shim.WrapsMPI(path):
			c.warn("preload", "unset LD_PRELOAD, or capture without that tool", "$LD_PRELOAD has %s, which wraps MPI as well", path)
		}
	}
}
