package bounded

import "path/filepath"

// IsBelow reports whether a path leads into a folder: by its text, or once links to both folders are followed. A link in
// the folder may lead out of it.
func IsBelow(dir, path string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return false
	}
	return contains(dir, path) || contains(followed(dir), filepath.Join(followed(filepath.Dir(path)), filepath.Base(path)))
}

// IsInside does the same once all links are followed: one that leads out of the folder is not inside. It is for files
// whose text may come into an answer or an error.
func IsInside(dir, path string) bool {
	real := followed(path)
	if real == path { // it has no links, or does not exist yet
		real = filepath.Join(followed(filepath.Dir(path)), filepath.Base(path))
	}
	return IsBelow(dir, real)
}

func contains(dir, path string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rest)
}

// followed returns a path without links, or as it is if it does not exist.
func followed(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
