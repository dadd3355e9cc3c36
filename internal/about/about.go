// Package about names this build of commq: its version and the commit it was built from.
package about

import "runtime/debug"

// Releases set both when they link; scripts/release does it.
var (
	version = "0.1.0-dev"
	commit  = ""
)

// Version is commq's version, a semantic one without v. What it promises is in docs/reference/versions.md.
func Version() string { return version }

// Commit is the commit that commq was built from, with -changed behind it where the sources had changes; empty if
// nothing is known of it.
func Commit() string {
	if commit != "" {
		return commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return fromSettings(info.Settings)
}

// fromSettings is the commit that the go command has put into a program.
func fromSettings(settings []debug.BuildSetting) string {
	var revision, changed string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-changed"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + changed
}
