package nearest

import "testing"

func TestName(t *testing.T) {
	known := []string{"density", "data-density", "sql", "exec", "latency_ns", "latency", "sites", "bandwidth_bytes_per_s", "MPI_Bcast"}
	for word, want := range map[string]string{
		"densty":               "density",
		"dnesity":              "density", // two exchanged letters are two differences
		"desnityy":             "",        // three, of a word of eight letters
		"data-denstiyy":        "data-density",
		"dens":                 "density", // the beginning
		"de":                   "",
		"latncy_ns":            "latency_ns",
		"latency_n":            "latency_ns",
		"latencys":             "latency",
		"bandwith_byte_per_s":  "bandwidth_bytes_per_s",
		"bandwith_per_s":       "",
		"bandwidth":            "bandwidth_bytes_per_s",
		"bytes":                "bandwidth_bytes_per_s", // a part, although two letters from sites
		"data":                 "data-density",
		"ls":                   "", // two of three letters differ from sql
		"sl":                   "sql",
		"exce":                 "exec",
		"mpi_bcast":            "MPI_Bcast",
		"":                     "",
		"something else again": "",
	} {
		if got := Name(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestHint(t *testing.T) {
	known := []string{"table", "json"}
	if got := Hint("tabel", known); got != "; did you mean table?" {
		t.Error(got)
	}
	if got := Hint("yaml", known); got != "" {
		t.Error(got)
	}
	if got := HintOr("yaml", known, "want a format"); got != "; want a format" {
		t.Error(got)
	}
}
