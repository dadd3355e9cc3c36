package cores

import "testing"

func TestText(t *testing.T) {
	two := []Host{{"n0", 16, 9}, {"n1", 4, 1}, {"n2", 16, 8}}
	for _, c := range []struct {
		use  Use
		want string
	}{
		{Use{CPUShare: 0.9}, ""},
		{Use{CPUShare: 1, Known: true}, ""},
		{Use{CPUShare: 0.5}, "between calls the ranks of r had a CPU for 50 % of the time only, usually because there were more " +
			"ranks than cores"},
		{Use{CPUShare: 0.5, Known: true}, "between calls the ranks of r had a CPU for 50 % of the time only although there was a " +
			"core for each (other processes, a limit of CPU time, files, sleep; commq capture --clock wall counts such time as computing)"},
		{Use{CPUShare: 0.5, Known: true, Threads: 5}, "between calls the ranks of r had a CPU for 50 % of the time only, as " +
			"their threads, up to 5 of a rank, may wait for each other outside MPI or share cores (else for other processes, " +
			"a limit of CPU time, files, sleep)"},
		{Use{CPUShare: 1, Known: true, Shared: two[1:2]}, "4 ranks of r shared 1 core on host n1"},
		{Use{CPUShare: 0.5, Known: true, Shared: two}, "4 ranks of r shared 1 core on host n1 (and likewise on 2 other hosts)"},
	} {
		if got := c.use.Text(" of r"); got != c.want || c.use.Waited() != (c.want != "") {
			t.Errorf("%+v: %q, waited %t; want %q", c.use, got, c.use.Waited(), c.want)
		}
	}
}
