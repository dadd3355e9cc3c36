package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// word is how a flag of ADR 20 looks in every command that has it.
type word struct {
	short string // the letter
	value string // how help names its value; "" for a switch
	kinds string // the types that it may have
}

// words are the flags that mean the same everywhere, as ADR 20 lists them.
var words = map[string]word{
	"run":     {"", "RUN", "string stringArray"},
	"base":    {"", "RUN", "string stringArray"},
	"name":    {"", "NAME", "string"},
	"output":  {"o", "FILE", "string"},
	"plot":    {"", "FILE", "string"},
	"replace": {"", "", "bool"},
	"format":  {"", "FORMAT", "string"},
	"ranks":   {"n", "N", "int int32 intSlice"},
	"machine": {"", "FILE", "string"},
	"set":     {"", "KEY=VALUE", "stringArray"},
	"spool":   {"", "FOLDER", "string"},
	"memory":  {"", "MIB", "int"},
	"threads": {"", "N", "int"},
	"limit":   {"", "N", "int"},
	"exact":   {"", "", "bool"},
	"store":   {"", "FOLDER", "string"},
	"quiet":   {"q", "", "bool"},
	"help":    {"h", "", "bool"},
}

// synonyms are other names for the same, and the word that is wanted.
var synonyms = map[string]string{"runs": "run", "new": "run", "save": "name", "out": "output",
	"file": "output", "memory-mib": "memory", "lines": "limit", "rows": "limit", "force": "replace",
	"overwrite": "replace", "picture": "plot", "raw": "exact", "cores": "threads", "processes": "ranks"}

// speech is what ADR 20 objects to in the flags and arguments of a command.
func speech(c *cobra.Command) (objections []string) {
	object := func(format string, args ...any) { objections = append(objections, fmt.Sprintf(format, args...)) }
	has := func(flag string) bool { return c.LocalFlags().Lookup(flag) != nil }
	c.InitDefaultHelpFlag()
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || isParameter(c, f.Name) {
			return
		}
		w, known := words[f.Name]
		switch value, _ := pflag.UnquoteUsage(f); {
		case synonyms[f.Name] != "":
			object("--%s: want --%s", f.Name, synonyms[f.Name])
		case !known && f.Shorthand != "":
			object("--%s: -%s is for another flag", f.Name, f.Shorthand)
		case !known:
		case f.Shorthand != w.short:
			object("--%s: its letter is %q, want %q", f.Name, f.Shorthand, w.short)
		case !slices.Contains(strings.Fields(w.kinds), f.Value.Type()):
			object("--%s: it takes a %s, want one of %s", f.Name, f.Value.Type(), w.kinds)
		case value != w.value && w.value != "":
			object("--%s: help calls its value %q, want %q", f.Name, value, w.value)
		}
	})
	for _, flag := range []string{"output", "plot", "name"} {
		if has(flag) && !has("replace") {
			object("--%s without --replace", flag)
		}
	}
	if has("run") && !takesRuns(c) {
		object("--run, and runs are not taken as arguments")
	}
	return objections
}

// isParameter reports whether a flag is the parameter of a query, whose header names it.
func isParameter(c *cobra.Command, flag string) bool {
	if c.Parent() == nil || c.Parent().Name() != "query" {
		return false
	}
	_, is := c.LocalFlags().Lookup(flag).Value.(*paramValue)
	return is
}

// takesRuns reports whether completion offers runs for the arguments of a command, or something else comes there.
func takesRuns(c *cobra.Command) bool {
	if c.Name() == "sql" { // its argument is the SQL
		return true
	}
	var before []string
	if strings.Contains(c.Use, "s3://BUCKET") { // runs come after the bucket
		before = append(before, "s3://b/p")
	}
	offered, _ := c.ValidArgsFunction(c, before, "")
	return slices.Contains(offered, "pair.2") || c.CommandPath() == "commq store pull" // nobody knows the bucket's runs
}

// TestCommandsSpeakOneLanguage: every command follows the words of docs/adr/0020-one-language-of-commands.md.
func TestCommandsSpeakOneLanguage(t *testing.T) {
	t.Setenv("COMMQ_STORE", smallStore(t))
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "commq ")
		if q, ok := strings.CutPrefix(name, "query "); ok && !strings.Contains(q, " ") {
			name = "query NAME" // all queries have the same flags
		}
		for _, o := range speech(c) {
			t.Errorf("%s: %s", name, o)
		}
	})
}

// TestGroupsOfCommands: the groups and their commands are those of ADR 20, which also bounds their number.
func TestGroupsOfCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/adr/0020-one-language-of-commands.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	names := regexp.MustCompile("`([a-z-]+)`")
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.Contains(cells[1], "`") || !strings.Contains(cells[2], "`") {
			continue
		}
		for _, m := range names.FindAllStringSubmatch(cells[2], -1) {
			group := strings.TrimSpace(cells[1])
			want[group] = append(want[group], m[1])
		}
	}
	got := map[string][]string{}
	count := 0
	for _, g := range commandGroups(&app{}) {
		for _, c := range g.commands {
			got[g.title] = append(got[g.title], c.Name())
			count++
		}
	}
	if !maps.EqualFunc(got, want, slices.Equal[[]string]) || count < 10 || count > 25 {
		t.Errorf("%d commands %v; ADR 20 has %v", count, got, want)
	}
}
