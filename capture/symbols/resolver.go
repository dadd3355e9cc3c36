package symbols

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// Frame is a function of a call path.
type Frame struct {
	// Function is its name; empty when it is not known. C++ names are demangled, without parameters. A procedure of a
	// Fortran module is module::name.
	Function string
	// File is the source file as it was given to the compiler, made absolute when the compiler's folder is known; empty
	// when it is not known.
	File string
	// Line is the line of the call; 0 when it is not known.
	Line int32
}

// Resolver finds functions and lines in the files of modules. The zero value is ready to use and looks for separate
// debug files in /usr/lib/debug. It is not safe for concurrent use.
type Resolver struct {
	// DebugDirs are the folders of separate debug files; nil means /usr/lib/debug.
	DebugDirs []string
	// Started is when the program started; zero when it is not known. A module without a build id whose file is newer
	// is not read.
	Started time.Time

	modules []*loaded // the last used one is last
	bad     map[moduleKey]error
}

// moduleKey identifies the file of a module.
type moduleKey struct{ path, buildID string }

type loaded struct {
	key  moduleKey
	file *file
}

// maxLoaded is the number of modules whose debug information is kept in memory.
const maxLoaded = 3

// Frames returns the functions at a return address, innermost first: several if the compiler has inlined functions,
// none if nothing is known. If the module's file is the reason, Warnings names it.
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
		r.rejectModule(moduleKey{a.Module.Path, a.Module.BuildID}, err)
	}
	return frames
}

// module reads the file of a module, unless it is in memory.
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
		r.rejectModule(key, err)
		return nil
	}
	if len(r.modules) >= maxLoaded {
		r.modules = slices.Delete(r.modules, 0, 1)
	}
	r.modules = append(r.modules, &loaded{key, f})
	return f
}

// rejectModule ensures that a module that cannot be read is not read again.
func (r *Resolver) rejectModule(key moduleKey, err error) {
	if r.bad == nil {
		r.bad = map[moduleKey]error{}
	}
	r.bad[key] = err
	r.modules = slices.DeleteFunc(r.modules, func(l *loaded) bool { return l.key == key })
}

// Warnings returns a sentence for each module that could not be read, sorted.
func (r *Resolver) Warnings() []string {
	var list []string
	for key, err := range r.bad {
		list = append(list, fmt.Sprintf("Functions and lines in %s are not known: %v.", filepath.Base(key.path), err))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Describe describes the innermost frame of a call path, for example "exchange (halo.c:41)". If less is known, it
// names the function, or the module and the offset. For an empty path it returns "?".
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

// guarded turns a panic into an error: the standard library's readers can panic on damaged files.
func guarded[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged debug information (%v)", p)
		}
	}()
	return f()
}
