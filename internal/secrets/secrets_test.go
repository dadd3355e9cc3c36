package secrets

import (
	"strings"
	"testing"
	"unicode"
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
		"psql PGPASSWORD='two h1dden' -n 3":                    "psql PGPASSWORD='xxxxx' -n 3",
		"psql PGPASSWORD=\"h1dden words":                       "psql PGPASSWORD=\"xxxxx",
		"run --pass 'h1dden words' --n 3":                      "run --pass 'xxxxx' --n 3",
		`{"url": 3, "password": "h1d\"den", "n": 4}`:           `{"url": 3, "password": "xxxxx", "n": 4}`,
		`{'db_pass':'h1dden', "token": 5, "secret":12345}`:     `{'db_pass':'xxxxx', "token": 5, "secret":xxxxx}`,
		`"{\"password\":\"h1dden\"}"`:                          `"{\"password\":\"xxxxx"`,
		"https://h1ddenh1ddenh1dden@github.com/a/b":            "https://xxxxx@github.com/a/b",
		"https://ada@github.com/a/b?to=name-of-somebody@host":  "https://ada@github.com/a/b?to=name-of-somebody@host",
		"DB_PASS=h1dden dbPass=h1dden SSHPASS=h1dden":          "DB_PASS=xxxxx dbPass=xxxxx SSHPASS=xxxxx",
		"passes=12345 bypass=ab compass=north passive=yes":     "passes=12345 bypass=ab compass=north passive=yes",
		"unexpected token: x, invalid token here":              "unexpected token: x, invalid token here",
		`run "my-token": no such run`:                          `run "my-token": no such run`,
		`unknown key "token": want one of a, b`:                `unknown key "token": want one of a, b`,
		`rule "two-pass": late-sender`:                         `rule "two-pass": late-sender`,
		"SELECT 1 FROM a WHERE token = rank AND 1":             "SELECT 1 FROM a WHERE token = rank AND 1",
		"WHERE (a.secret = b.secret) OR pwd = 'h1dden'":        "WHERE (a.secret = b.secret) OR pwd = 'xxxxx'",
		"password = letters":                                   "password = xxxxx",
		"--vault-pass h1dden rabbitmq_pass=h1dden":             "--vault-pass xxxxx rabbitmq_pass=xxxxx",
		"monkeypass=h lowPass=h --dummy-n-pass h":              "monkeypass=h lowPass=h --dummy-n-pass h",
		`keys "a", "token": want one`:                          `keys "a", "token": want one`,
		"a -pass 1 --two-pass in.dat -first-pass b --pass=12":  "a -pass 1 --two-pass in.dat -first-pass b --pass=12",
		"two_pass=late n-pass: 3 \"two-pass\": \"late\"":       "two_pass=late n-pass: 3 \"two-pass\": \"late\"",
		"-pass h1dden --db-pass h1dden my_pass=h1dden":         "-pass xxxxx --db-pass xxxxx my_pass=xxxxx",
		"pass=h1dden&x=1 --pass=h1dden CI_PASS=h1dden":         "pass=xxxxx&x=1 --pass=xxxxx CI_PASS=xxxxx",
		"{\n \"n\": 1,\n \"secret\": 123456, \"pass\":123456}": "{\n \"n\": 1,\n \"secret\": xxxxx, \"pass\":xxxxx}",
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
		{[]string{"--password=a;b", "--password=my secret phrase", "--password=\"x\"", "--password=a\nb"},
			[]string{"--password=xxxxx", "--password=xxxxx", "--password=xxxxx", "--password=xxxxx"}, 4},
		{[]string{"--config={\"password\":\"x y\"}", "-DDB_PASS=x=y"},
			[]string{"--config={\"password\":\"xxxxx\"}", "-DDB_PASS=xxxxx"}, 2},
		{[]string{"--password", "12345", "--pass", "x", "--token", "12345", "--token", "123456", "--secret=yes"},
			[]string{"--password", "xxxxx", "--pass", "xxxxx", "--token", "12345", "--token", "xxxxx", "--secret=yes"},
			3},
		{[]string{"--two-pass", "in.dat", "-pass", "1", "--pass", hidden, "pass=" + hidden},
			[]string{"--two-pass", "in.dat", "-pass", "1", "--pass", "xxxxx", "pass=xxxxx"}, 2},
		{[]string{"--password=token5", "-c", "password = hidden"}, []string{"--password=xxxxx", "-c", "password = xxxxx"}, 2},
		{[]string{"http://h/?pass=abcd&schema=x"}, []string{"http://h/?pass=xxxxx&schema=x"}, 1},
		{[]string{"http://h/?token=abcd;e&schema=x"}, []string{"http://h/?token=xxxxx;e&schema=x"}, 1},
		{[]string{"--env=A=redis://u:" + hidden + "@h,B_TOKEN=x"}, []string{"--env=A=redis://u:xxxxx@h,B_TOKEN=xxxxx"}, 1},
		{[]string{"mpirun.mpich", "-genv", "API_TOKEN", hidden, "-env", "DB_PASS", "--x", "-env", "SEED", "5", "./a"},
			[]string{"mpirun.mpich", "-genv", "API_TOKEN", "xxxxx", "-env", "DB_PASS", "xxxxx", "-env", "SEED", "5", "./a"}, 2},
		{[]string{}, []string{}, 0},
	} {
		got, n := Args(c.words)
		if strings.Join(got, "|") != strings.Join(c.want, "|") || n != c.n {
			t.Errorf("%q: %q, %d; want %q, %d", c.words, got, n, c.want, c.n)
		}
	}
}

// FuzzText: nothing of a secret stays, whatever it is and whatever stands around it.
func FuzzText(f *testing.F) {
	f.Add("a b", "h1dden", "c")
	f.Add("://x@", "two words", "--n")
	f.Add("--x=\"", "a;b&c'd\"e", "@")
	f.Add("n", "12345\n", "\\")
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		if switches.MatchString(secret) {
			return
		}
		if words, _ := Args([]string{before, "--password=" + secret, after}); words[1] != "--password="+Mask {
			t.Errorf("%q", words)
		}
		if words, _ := Args([]string{"--password", secret, after}); words[1] != Mask && !strings.HasPrefix(secret, "--") {
			t.Errorf("%q", words)
		}
		if strings.ContainsFunc(secret, unicode.IsSpace) {
			return
		}
		if got := Text("x https://ada:" + secret + "@" + after); !strings.HasPrefix(got, "x https://ada:xxxxx@") {
			t.Errorf("%q", got)
		}
	})
}
