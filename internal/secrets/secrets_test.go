package secrets

import (
	"strings"
	"testing"
)

const hidden = "h1dden/%#9"

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"https://ada:h1dden%#/@9@trino:8080?catalog=hive":      "https://ada:xxxxx@trino:8080?catalog=hive",
		"http://ada@trino:8080?access_token=h1dden&schema=x":   "http://ada@trino:8080?access_token=xxxxx&schema=x",
		"https://trino/path:with@sign":                         "https://trino/path:with@sign",
		"curl -H 'Authorization: Bearer h1dden' u":             "curl -H 'Authorization: Bearer xxxxx' u",
		"ssh n2 PGPASSWORD=h1dden psql":                        "ssh n2 PGPASSWORD=xxxxx psql",
		"run --api-key h1dden --n 3":                           "run --api-key xxxxx --n 3",
		"key AKIAIOSFODNN7EXAMPLE here":                        "key xxxxx here",
		"--tokens 4096 --max-tokens=100000 --token 5":          "--tokens 4096 --max-tokens=100000 --token 5",
		"--password-file /etc/x --passwords=no SECRETARY=ada":  "--password-file /etc/x --passwords=no SECRETARY=ada",
		"bt.C.x 64 -ksp_type cg -pc_type gamg in.lj -var x 20": "bt.C.x 64 -ksp_type cg -pc_type gamg in.lj -var x 20",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln is one":     "xxxxx is one",
	} {
		if got := Text(text); got != want {
			t.Errorf("%s\nis  %s\nnot %s", text, got, want)
		}
	}
}

func TestArgs(t *testing.T) {
	for _, c := range []struct {
		words, want []string
		n           int
	}{
		{[]string{"./a", "--password", hidden, "-n", "4"}, []string{"./a", "--password", "xxxxx", "-n", "4"}, 1},
		{[]string{"./a", "--db-password=" + hidden}, []string{"./a", "--db-password=xxxxx"}, 1},
		{[]string{"./a", "--token", "--n", "token", "x y"}, []string{"./a", "--token", "--n", "token", "x y"}, 0},
		{[]string{"./a", "-access-key", "two words", "dbToken=" + hidden},
			[]string{"./a", "-access-key", "xxxxx", "dbToken=xxxxx"}, 2},
		{[]string{"mpirun", "-x", "WANDB_API_KEY=" + hidden}, []string{"mpirun", "-x", "WANDB_API_KEY=xxxxx"}, 1},
		{[]string{}, []string{}, 0},
	} {
		got, n := Args(c.words)
		if strings.Join(got, "|") != strings.Join(c.want, "|") || n != c.n {
			t.Errorf("%q: %q, %d; want %q, %d", c.words, got, n, c.want, c.n)
		}
	}
}

// FuzzText: nothing of a secret stays, whatever stands around it.
func FuzzText(f *testing.F) {
	f.Add("a b", "c")
	f.Add("://x@", "--n")
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.Contains(before+after, "h1dden") {
			return
		}
		masked, _ := Args([]string{before, "--password=h1dden", after})
		if strings.Contains(strings.Join(masked, " "), "h1dden") {
			t.Errorf("%q", masked)
		}
		if got := Text("x https://ada:h1dden@" + after); strings.Contains(got, "h1dden") {
			t.Errorf("%q", got)
		}
	})
}
