// Package about names this build of commq: its version and the commit it was built from.
package about

import (
	"runtime/debug"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Releases set both when they link; scripts/release does it.
var (
	version = "0.1.0-dev"
	commit  = ""
)

// Version is commq's version, a semantic one without v. What it promises is in docs/reference/versions.md.
// go install of a release takes the sources as they are, so there the module's version counts.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || commit != "" {
		return version
	}
	return ofModule(info.Main.Version, version)
}

// ofModule is the version of a module that is a release, else that of the sources.
func ofModule(of, sources string) string {
	if !semver.IsValid(of) || semver.Build(of) != "" || module.IsPseudoVersion(of) {
		return sources // a checkout, or a commit between releases
	}
	return of[len("v"):]
}

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
	if from := fromSettings(info.Settings); from != "" {
		return from
	}
	revision, _ := module.PseudoVersionRev(info.Main.Version) // of go install of a commit; empty for other versions
	return revision
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
