package run

import (
	"slices"
	"testing"

	"github.com/commq/commq/schema"
)

func TestFactsDescribeRun(t *testing.T) {
	status := 3
	m := &schema.Manifest{Ranks: 1024, TimeOrigin: "measured", ComputeClock: "cpu", EndNs: 1_500_000_000, Epochs: 2,
		Ended: "aborted", Record: "messages", Hash: "crc64", HashVerify: true, Callsites: true, Stack: 4,
		Filters: []string{"rank<4"}, Digest: "d1", SchemaVersion: 7,
		Counts: schema.Counts{Calls: 12345, Messages: 1000, MessageBytes: 8000, Dropped: 2},
		Origin: schema.Origin{Command: []string{"./halo", "a b"}, MPI: "Open MPI v4\nmore", Hosts: []string{"n1", "n2"},
			ExitStatus: &status, Label: "night", Commq: "1.2"}}
	found := Found{Name: "halo.1024", Dir: "/runs/halo.1024", Manifest: m}
	if got, want := found.Facts(false), []Fact{{"run", "halo.1024"}, {"command", "./halo 'a b'"}, {"mpi", "Open MPI v4"},
		{"ranks", "1,024 on 2 hosts"}, {"ended", "aborted, exit status 3"},
		{"time", "1.5 s measured, compute clock cpu, 2 epochs"}, {"calls", "12,345 (recorded: messages)"},
		{"messages", "1,000"}, {"message bytes", "8,000 B"}, {"collectives", "0"}, {"calls dropped", "2"},
		{"hashes", "crc64"}, {"digest", "d1"}}; !slices.Equal(got, want) {
		t.Errorf("facts:\n%q, want\n%q", got, want)
	}
	m.TimeResolutionNs = 1 << 27
	for exact, want := range map[bool]string{
		false: "1.5 s measured in steps of 134 ms, compute clock cpu, 2 epochs",
		true:  "1.500000000 s measured in steps of 134217728 ns, compute clock cpu, 2 epochs"} {
		if got := found.Facts(exact); got[5].Value != want {
			t.Errorf("exact %v: %q, want %q", exact, got[5].Value, want)
		}
	}
	worst := schema.HostCores{Ranks: 16, Cores: 8, Least: 1, Most: 4, SharingRanks: 9, SharedCores: 4}
	m.Origin.Cores = []schema.HostCores{worst, worst}
	m.Origin.Cores[1].Host = 1
	if got, want := found.CaptureFacts(), []Fact{{"label", "night"}, {"hosts", "n1, n2"},
		{"cores", "16 ranks on 8 cores of n1 and of 1 other host, a rank on 1 to 4; 9 ranks share 4 cores"},
		{"captured with", "record messages; clock cpu; hash crc64, verified; call sites of 4 frames; filters rank<4"},
		{"written by", "commq 1.2, schema version 7"}}; !slices.Equal(got, want) {
		t.Errorf("facts of the capture:\n%q, want\n%q", got, want)
	}
}

func TestRemarksNameWhatIsUnusual(t *testing.T) {
	usual := schema.Manifest{Record: "all", TimeOrigin: "measured", Ended: "finalized"}
	if got := Remarks(&usual); got != "" {
		t.Errorf("of a usual run: %q", got)
	}
	other := schema.Manifest{Record: "messages", TimeOrigin: "virtual", Ended: "killed"}
	if got, want := Remarks(&other), "messages only, virtual, killed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	usual.Filters = []string{"pcontrol", "call:MPI_I*", "-call:MPI_Ibcast"}
	usual.Counts.Dropped = 1234
	if got, want := Remarks(&usual),
		"switched off by MPI_Pcontrol, only MPI_I*, without MPI_Ibcast, 1,234 calls lost"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLeftOutNamesWhatIsLacking(t *testing.T) {
	const messages, operations, all = schema.ReadsMessages, schema.ReadsOperations, schema.ReadsAll
	for _, c := range []struct {
		record   string
		filters  []string
		messages int64 // rows, of 5
		events   int64 // rows, of 40
		dropped  int64
		reads    schema.Reads
		want     string
	}{
		{"all", nil, 5, 40, 0, all, ""},
		{"all", []string{"call:MPI_Put"}, 0, 40, 0, operations, ""}, // the program calls nothing else
		{"all", []string{"call:MPI_Allreduce"}, 0, 10, 0, messages, "all calls but MPI_Allreduce (--calls)"},
		{"all", []string{"-call:MPI_Wait*", "-call:MPI_Recv"}, 5, 10, 0, all, "MPI_Wait*, MPI_Recv (--calls)"},
		{"all", []string{"-call:MPI_Wait*"}, 5, 10, 0, messages | operations, ""},
		{"all", []string{"call:MPI_I*", "-call:MPI_Ibcast"}, 4, 10, 0, all,
			"all calls but MPI_I* and also MPI_Ibcast (--calls)"},
		{"all", []string{"pcontrol"}, 4, 10, 0, messages, "calls made while MPI_Pcontrol had switched recording off"},
		{"messages", nil, 5, 10, 0, messages | operations, ""},
		{"messages", nil, 5, 10, 0, all, "the calls of its messages (--record messages)"},
		{"collectives", nil, 0, 10, 0, operations, ""},
		{"collectives", nil, 0, 10, 0, messages, "messages and their calls (--record collectives)"},
		{"all", nil, 5, 40, 2000, messages, "2,000 of 2,040 calls, which could not be recorded"},
		{"all", nil, 5, 40, 2000, 0, ""},
		{"all", []string{"-call:MPI_Send"}, 4, 30, 1, messages,
			"MPI_Send (--calls) and 1 of 41 calls, which could not be recorded"},
	} {
		m := &schema.Manifest{Record: c.record, Filters: c.filters, Tables: []schema.TableInfo{
			{Name: "events", Rows: c.events}, {Name: "messages", Rows: c.messages}},
			Counts: schema.Counts{Calls: 40, Messages: 5, Dropped: c.dropped}}
		if c.want != "" {
			c.want = "r lacks " + c.want + ": what they did is not in this answer"
		}
		if got := LeftOut("r", m, c.reads, "this answer"); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
