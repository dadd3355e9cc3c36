package about

import (
	"runtime/debug"
	"testing"
)

func TestCommit(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	for _, c := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{nil, ""},
		{[]debug.BuildSetting{setting("vcs.modified", "true")}, ""},
		{[]debug.BuildSetting{setting("vcs.revision", "2b27cec"), setting("vcs.modified", "false")}, "2b27cec"},
		{[]debug.BuildSetting{setting("vcs.modified", "true"), setting("vcs.revision", "2b27cec")}, "2b27cec-changed"},
	} {
		if got := fromSettings(c.settings); got != c.want {
			t.Errorf("%v: %q, want %q", c.settings, got, c.want)
		}
	}
	defer func(old string) { commit = old }(commit)
	if commit = "5d69345"; Commit() != "5d69345" {
		t.Errorf("the linker's commit is not taken: %q", Commit())
	}
}
