package symbols

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// Frame is a function of a call path.
type Frame struct {
	// Function is its name, C++ demangled without parameters, that of a Fortran module's procedure as module::name; empty:
	// not known.
	Function string
	// File is the source file as the compiler was given it, absolute where the compiler's folder is known; empty: not known.
	File string
	// Line is the line of the call in it; 0: not known.
	Line int32
}

// Resolver finds functions and lines in the modules' files. The zero value looks for separate debug files in
// /usr/lib/debug. It is not for concurrent use.
type Resolver struct {
	// DebugDirs are the folders of separate debug files; nil: /usr/lib/debug.
	DebugDirs []string
	// Started is when the program started: a module without build id whose file is newer is not read. Zero: not known.
	Started time.Time

	modules []*loaded // last used last
	bad     map[moduleKey]error
}

// moduleKey is what makes a module's file: two processes with equal keys have the same.
type moduleKey struct{ path, buildID string }

type loaded struct {
	key  moduleKey
	file *file
}

// maxLoaded is the number of modules whose debug information is in memory at a time.
const maxLoaded = 3

// Frames are the functions at a return address, the innermost first: more than one where the compiler put functions into
// each other. It is empty when nothing is known; Warnings then say why, if the module's file is the reason.
func (r *Resolver) Frames(a Address) []Frame {
	if a.Module == nil {
		return nil
	}
	f := r.module(a.Module)
	if f == nil {
		return nil
	}
	frames, err := guarded(func() ([]Frame, error) { return f.frames(a.Offset - 1), nil })
	if err != nil {
		r.spoilt(moduleKey{a.Module.Path, a.Module.BuildID}, err)
	}
	return frames
}

// module reads a module's file, once.
func (r *Resolver) module(m *Module) *file {
	key := moduleKey{m.Path, m.BuildID}
	for i, l := range r.modules {
		if l.key == key {
			r.modules = append(slices.Delete(r.modules, i, i+1), l)
			return l.file
		}
	}
	if r.bad[key] != nil {
		return nil
	}
	f, err := guarded(func() (*file, error) { return r.load(m) })
	if err != nil {
		r.spoilt(key, err)
		return nil
	}
	if len(r.modules) >= maxLoaded {
		r.modules = slices.Delete(r.modules, 0, 1)
	}
	r.modules = append(r.modules, &loaded{key, f})
	return f
}

func (r *Resolver) spoilt(key moduleKey, err error) {
	if r.bad == nil {
		r.bad = map[moduleKey]error{}
	}
	r.bad[key] = err
	r.modules = slices.DeleteFunc(r.modules, func(l *loaded) bool { return l.key == key })
}

// Warnings say which modules could not be read and why, a sentence each, sorted.
func (r *Resolver) Warnings() []string {
	var list []string
	for key, err := range r.bad {
		list = append(list, fmt.Sprintf("Functions and lines in %s are not known: %v.", filepath.Base(key.path), err))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Describe is a call path's innermost frame in words, for example "exchange (halo.c:41)"; where less is known, the function
// alone, or the module and the offset; "?" for an empty path.
func (r *Resolver) Describe(path []Address) string {
	if len(path) == 0 {
		return "?"
	}
	a := path[0]
	frames := r.Frames(a)
	switch {
	case len(frames) > 0 && frames[0].Line > 0 && frames[0].Function != "":
		return fmt.Sprintf("%s (%s:%d)", frames[0].Function, filepath.Base(frames[0].File), frames[0].Line)
	case len(frames) > 0 && frames[0].Line > 0:
		return fmt.Sprintf("%s:%d", filepath.Base(frames[0].File), frames[0].Line)
	case len(frames) > 0 && frames[0].Function != "":
		return frames[0].Function
	case a.Module != nil:
		return fmt.Sprintf("%s+%#x", a.Module.Name(), a.Offset)
	}
	return fmt.Sprintf("%#x", a.Offset)
}

// guarded turns a panic of the standard library's readers into an error: what they read is whatever lies in the file.
func guarded[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged debug information (%v)", p)
		}
	}()
	return f()
}
