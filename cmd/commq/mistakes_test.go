package main

import (
	"strings"
	"testing"
)

// TestHelpGroups: the help of commq lists the groups of ADR 20 in their order, and completion and help only in its
// last line.
func TestHelpGroups(t *testing.T) {
	status, out, _ := commandLine("", "--help")
	if status != exitDone {
		t.Fatal(out)
	}
	at := 0
	for _, title := range []string{"Record", "Ask", "Compare", "Model", "Rewrite", "Data", "Flags"} {
		i := strings.Index(out, "\n\n"+title+":\n")
		if i < at {
			t.Errorf("%s is missing or misplaced:\n%s", title, out)
		}
		at = i
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := strings.Join(lines[len(lines)-2:], " ")
	if !strings.Contains(last, "commq help COMMAND") || !strings.Contains(last, "commq completion") {
		t.Errorf("the last line is %q", last)
	}
	for _, name := range []string{"completion", "help"} {
		if strings.Contains(out, "\n  "+name+" ") {
			t.Errorf("%s is listed:\n%s", name, out)
		}
	}
}

// TestUnknownWords: every command that has subcommands rejects a word that is none, with status 2.
func TestUnknownWords(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"nonsense", `unknown command "nonsense"; commq --help lists the commands`},
		{"exce", `unknown command "exce"; did you mean exec?`},
		{"import otf x", `import: unknown format "otf"; want dim, otf2, prv, dumpi, liballprof, inspector, kineto, exectrace, nsys, tit, chakra, or a file alone`},
		{"import otf2 --run r", `import otf2: unknown flag --run`},
		{"store pul s3://x", `store: unknown command "pul"; did you mean pull?`},
		{"runs --all", `runs: unknown flag --all`},
		{"capture --mpicx x", `capture: unknown flag --mpicx; did you mean --mpicc?`},
		{"predict --rank 3", `predict: unknown flag --rank; did you mean --ranks?`},
		{"predict --explained much --run x", `predict: --explained much: want a number`},
		{"doctor -x", `doctor: unknown flag -x`},
	} {
		status, out, errs := commandLine("", strings.Fields(c.line)...)
		if status != exitCannot || out != "" || errs != "commq: "+c.want+"\n" {
			t.Errorf("%s: status %d, %s%s; want %s", c.line, status, out, errs, c.want)
		}
	}
}
