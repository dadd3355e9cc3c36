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

func TestVersionOfModule(t *testing.T) {
	for _, c := range []struct{ of, want string }{
		{"", "0.1.0-dev"}, // a test
		{"(devel)", "0.1.0-dev"},
		{"v0.2.0", "0.2.0"},
		{"v0.2.0-rc.1", "0.2.0-rc.1"},
		{"v0.2.0+dirty", "0.1.0-dev"}, // a changed checkout of a release
		{"v0.2.1-0.20261126204539-0566f2b69e81", "0.1.0-dev"},
		{"v0.0.0-20261126204539-0566f2b69e81+dirty", "0.1.0-dev"},
	} {
		if got := ofModule(c.of, "0.1.0-dev"); got != c.want {
			t.Errorf("%s: %q, want %q", c.of, got, c.want)
		}
	}
}
