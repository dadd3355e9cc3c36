package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/predict/regress"
)

// TestFitTables: tables with different headers, orders and separators have one answer, 100 (P-1) at 16.
func TestFitTables(t *testing.T) {
	for _, c := range []struct{ table, flags string }{
		{"ranks,value\n2,100\n4,300\n8,700\n", ""},
		{"value,ranks\r\n300,4\r\n100,2\r\n700,8\r\n", ""},
		{"\xef\xbb\xbfP;bytes\n8;700\n2;100\n4;300", ""},
		{"# of BT\n\nprocesses\tKB\n8\t700\n2\t100.0\n4\t3e2\n2\t100\n", ""},
		{"2, 100\n4, 300\n\"8\", 700\n", ""},
		{"size,np,bytes,time\nA,2,100,7\nA,4,300,8\nA,8,700,9\n", "--columns np,bytes"},
		{"time,P,value\n3,2,100\n3,4,300\n3,8,700\n", ""},
	} {
		status, out, stderr := commandLine(c.table,
			append([]string{"fit", "--table", "-", "--at", "16", "--format", "json"}, strings.Fields(c.flags)...)...)
		var all []regress.Prediction
		if err := json.Unmarshal([]byte(out), &all); status != 0 || err != nil || len(all) != 1 {
			t.Errorf("%q: status %d, %v: %s", c.table, status, err, stderr)
		} else if p := all[0]; p.Value != 1500 || !p.Exact || p.Form != regress.Exact {
			t.Errorf("%q: %+v; want 1500", c.table, p)
		}
	}
}

// TestFitWrongTables: errors name the place and what would help, and the exit status is 2.
func TestFitWrongTables(t *testing.T) {
	for _, c := range []struct{ table, flags, want string }{
		{"", "", "stdin: no values"},
		{"ranks,value\n", "", "stdin: no values"},
		{"ranks,value\n4,100\n", "", "stdin: all points have 4 ranks: at least two"},
		{"ranks,value\n4,100\n4,90\n", "", "stdin: all points have 4 ranks: at least two"},
		{"ranks,value\n4,100\n\n# more\n8,NaN\n", "", `stdin:5: value "NaN": want a finite number`},
		{"ranks,value\n4,100\n8,-Inf\n", "", `stdin:3: value "-Inf": want a finite number`},
		{"ranks,value\n4,100\n8,1e309\n", "", `stdin:3: value "1e309" is too large`},
		{"ranks,value\n4,100\n8,2892 KB\n", "", `stdin:3: value "2892 KB" is not a number`},
		{"ranks,value\n4,100\n8,\n", "", `stdin:3: value "" is not a number`},
		{"ranks,value\n4,100\n0,7\n", "", `stdin:3: "0" is not a number of ranks`},
		{"ranks,value\n4,100\n-8,7\n", "", `stdin:3: "-8" is not a number of ranks`},
		{"ranks,value\n4,100\n8.5,7\n", "", `stdin:3: "8.5" is not a number of ranks`},
		{"ranks,value\n4,100\n1e300,7\n", "", `stdin:3: "1e300" is not a number of ranks`},
		{"ranks,value\n4,100\n8,7,9\n", "", "stdin:3: 3 columns, the first line has 2"},
		{"4 100\n8 7\n", "", "stdin:1: \"4 100\" is one column"},
		{"ranks,a,b\n4,1,2\n", "", "stdin:1: columns ranks, a, b: it is not clear which"},
		{"ranks,a,b\n4,1,2\n", "--columns ranks,c", `stdin:1: no column "c"; there are ranks, a, b`},
		{"4,100\n8,7\n", "--columns ranks,value", "stdin:1: \"4\" is not the name of a column"},
		{"ranks,value\n4,\"100\n", "", "stdin:2: extraneous or missing \""},
		{"ranks,value\n4,100\n8,50\n", "--form cubic", "--form cubic: want one of exact, const, power,"},
		{"ranks,value\n4,0\n8,50\n", "--form power", "do not determine a form of the family power"},
		{"ranks,value\n4,100.5\n8,50\n", "--form exact", "no exact law"},
		{"ranks,value\n4,100\n8,50\n", "--at 0", "--at 0: want 1 rank or more"},
		{"ranks,value\n4,100\n8,50\n", "--columns a", "--columns a: want two names"},
		{"ranks,value\n4,100\n8,50\n", "--format yaml", "--format yaml: want one of text, json, csv"},
	} {
		status, out, stderr := commandLine(c.table,
			append([]string{"fit", "--table", "-", "--at", "16"}, strings.Fields(c.flags)...)...)
		if status != exitCannot || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q %s: status %d, %q, want %q", c.table, c.flags, status, stderr, c.want)
		}
	}
	for args, want := range map[string]string{
		"fit --at 16":                            "name runs with --run, or a table with --table",
		"fit --table t.csv":                      "name one with --at",
		"fit --table nowhere/t.csv --at 16":      "open nowhere/t.csv: no such file",
		"fit --table " + t.TempDir() + " --at 3": "is a directory",
	} {
		if status, _, stderr := commandLine("", strings.Fields(args)...); status != exitCannot ||
			!strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %q, want %q", args, status, stderr, want)
		}
	}
}

// TestFitNamesTheFile: errors begin with file and line.
func TestFitNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(file, []byte("ranks,value\n4,x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, stderr := commandLine("", "fit", "--table", file, "--at", "9"); !strings.Contains(stderr, file+":2: ") {
		t.Errorf("%q does not name %s:2", stderr, file)
	}
}

// TestFitOfAHostileColumn: the name of a column of somebody's table is no command of a log, where a pipe goes to one.
func TestFitOfAHostileColumn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(file, []byte("ranks,\"x\n::add-mask::y\"\n4,1\n8,2\n16,4\n32,8\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, errs := commandLine("", "fit", "--table", file, "--at", "64")
	if status != exitDone || !strings.HasPrefix(out, `x\n::add-mask::y at 64 ranks: 16`) {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
}
