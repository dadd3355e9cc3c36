package schema

import (
	"encoding/csv"
	"os"
	"strings"
	"testing"
)

// callLine is a line of calls.csv: the facts are checked against the arguments that the MPI standard gives a call.
type callLine struct {
	id                               CallID
	name, recorder, arguments, facts string
}

func callLines(t *testing.T) (calls []callLine) {
	t.Helper()
	f, err := os.Open("calls.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range lines[0] {
		column[name] = i
	}
	for i, l := range lines[1:] {
		calls = append(calls, callLine{CallID(i + 1), l[column["name"]], l[column["recorder"]], l[column["arguments"]],
			l[column["facts"]]})
	}
	return calls
}

func TestFactsInCallsCSVMatchGo(t *testing.T) {
	known := map[string]bool{}
	for _, name := range FactNames {
		known[name] = true
	}
	if n := Facts(1) << len(FactNames); FactLargeCount<<1 != n {
		t.Fatalf("%d names do not end at FactLargeCount", len(FactNames))
	}
	for _, c := range callLines(t) {
		for _, f := range strings.Fields(c.facts) {
			if !known[f] {
				t.Errorf("%s: calls.csv has the fact %q, which FactNames does not list", c.name, f)
			}
		}
		if got := c.id.Facts().String(); got != c.facts {
			t.Errorf("%s: facts %q, calls.csv has %q", c.name, got, c.facts)
		}
		if id, ok := CallByName(c.name); !ok || id != c.id {
			t.Errorf("CallByName(%q) is %d, %t, want %d", c.name, id, ok, c.id)
		}
	}
}

// mpiRules are statements about MPI that hold for every call with a recorder: has is what the facts say, want what the
// call's name, arguments or recorder say.
var mpiRules = []struct {
	name      string
	has, want func(c callLine) bool
}{
	{"the name of every call with large counts ends in _c",
		fact(FactLargeCount), func(c callLine) bool { return strings.HasSuffix(c.name, "_c") }},
	{"a call that makes a request has a single request as its last argument and does not start or complete it",
		fact(FactMakesRequest), func(c callLine) bool {
			return strings.HasSuffix(c.arguments, "MPI_Request * request") &&
				!c.id.IsAny(FactStarts|FactCompletes|FactFrees|FactTests) && c.recorder != "cancel"
		}},
	{"a call reduces when it is collective and has an operation",
		fact(FactReduces), func(c callLine) bool { return c.id.Is(FactCollective) && takes(c, "MPI_Op op") }},
	{"a call is rooted when it is collective and has a root",
		fact(FactRooted), func(c callLine) bool { return c.id.Is(FactCollective) && takes(c, "int root") }},
	{"a rooted call has one direction",
		fact(FactRooted), func(c callLine) bool { return c.id.Is(FactToRoot) != c.id.Is(FactFromRoot) }},
	{"a collective has counts for each peer when one of its arguments is an array of them",
		fact(FactVariableCounts), func(c callLine) bool {
			return c.id.Is(FactCollective) && strings.Contains(c.arguments, "counts[]")
		}},
	{"MPI_Start and MPI_Startall start requests",
		fact(FactStarts), func(c callLine) bool { return strings.HasPrefix(c.name, "MPI_Start") }},
	{"MPI_Wait* and MPI_Test* complete requests",
		fact(FactCompletes), func(c callLine) bool {
			return strings.HasPrefix(c.name, "MPI_Wait") || strings.HasPrefix(c.name, "MPI_Test")
		}},
	{"a call that tests has a flag or a count of those that are complete",
		fact(FactTests), func(c callLine) bool {
			return takes(c, "int * flag") || c.recorder == "testsome"
		}},
	{"partitioned calls are MPI_P*",
		fact(FactPartitioned), func(c callLine) bool {
			return strings.HasPrefix(c.name, "MPI_Psend") || strings.HasPrefix(c.name, "MPI_Precv") ||
				strings.HasPrefix(c.name, "MPI_Pready") || c.name == "MPI_Parrived"
		}},
	{"persistent calls are MPI_*_init",
		fact(FactPersistent), func(c callLine) bool {
			return strings.HasSuffix(strings.TrimSuffix(c.name, "_c"), "_init") && c.recorder != "session_init"
		}},
	{"a recorded call with a window is one-sided",
		fact(FactOneSided), func(c callLine) bool { return strings.Contains(c.arguments, "MPI_Win ") }},
	{"a recorded call with a file is of MPI-IO, and MPI_File_delete is",
		fact(FactFile), func(c callLine) bool {
			return strings.Contains(c.arguments, "MPI_File ") || c.recorder == "file_delete"
		}},
	{"a call that matches has a message handle",
		fact(FactMatched), func(c callLine) bool { return takes(c, "MPI_Message * message") }},
	{"fence, flush, lock and unlock are what the names of window calls tell",
		func(c callLine) bool { return c.id.IsAny(FactFence | FactFlush | FactLock | FactUnlock) },
		func(c callLine) bool {
			for _, word := range []string{"fence", "flush", "lock"} {
				if strings.HasPrefix(c.name, "MPI_Win") && strings.Contains(c.name, word) {
					return true
				}
			}
			return false
		}},
	{"MPI_Init and MPI_Init_thread initialize MPI", fact(FactInitializes),
		func(c callLine) bool { return c.recorder == "init" }},
	{"MPI_Finalize finalizes MPI", fact(FactFinalizes), func(c callLine) bool { return c.recorder == "finalize" }},
	{"a call that makes a window returns it", fact(FactCreatesWindow),
		func(c callLine) bool { return takes(c, "MPI_Win * win") && c.recorder == "win_new" }},
	{"a call that makes a communicator returns it", fact(FactCreatesCommunicator),
		func(c callLine) bool {
			for _, recorder := range []string{"comm_free", "comm_parent", "session_finalize"} {
				if c.recorder == recorder {
					return false
				}
			}
			return strings.Contains(c.arguments, "MPI_Comm * ")
		}},
}

func fact(f Facts) func(c callLine) bool { return func(c callLine) bool { return c.id.Is(f) } }

// takes reports whether the declaration is one of the call's arguments.
func takes(c callLine, declaration string) bool {
	for _, a := range strings.Split(c.arguments, ";") {
		if strings.TrimSpace(a) == declaration {
			return true
		}
	}
	return false
}

func TestFactsAgreeWithMPIStandard(t *testing.T) {
	for _, c := range callLines(t) {
		if c.recorder == "" {
			if c.id.Facts()&^(FactLargeCount|FactTests|FactAny) != 0 {
				t.Errorf("%s: not recorded, but has the facts %q", c.name, c.facts)
			}
			continue
		}
		for _, r := range mpiRules {
			if has, want := r.has(c), r.want(c); has != want {
				t.Errorf("%s: %t, want %t: %s", c.name, has, want, r.name)
			}
		}
		checkExclusive(t, c)
		checkPointToPoint(t, c)
	}
}

// checkExclusive: of some facts a call has at most one.
func checkExclusive(t *testing.T, c callLine) {
	t.Helper()
	for _, group := range []Facts{FactPointToPoint | FactCollective | FactOneSided | FactFile,
		FactBlocking | FactNonblocking | FactPersistent | FactTests | FactStarts,
		FactSynchronous | FactBuffered | FactReady, FactFence | FactFlush | FactLock | FactUnlock,
		FactCreatesCommunicator | FactCreatesWindow | FactOpensFile} {
		if f := c.id.Facts() & group; f&(f-1) != 0 {
			t.Errorf("%s: %q exclude each other", c.name, f)
		}
	}
	if c.id.Is(FactCollective) && !c.id.IsAny(FactBlocking|FactNonblocking|FactPersistent) {
		t.Errorf("%s: collective, but not blocking, nonblocking or persistent", c.name)
	}
	if c.id.Is(FactCollective) != (c.id.Operation() != 0) {
		t.Errorf("%s: the facts %q do not agree with its operation", c.name, c.facts)
	}
}

// checkPointToPoint: the letters of a name of a point-to-point call tell its mode, and whether it is nonblocking.
func checkPointToPoint(t *testing.T, c callLine) {
	t.Helper()
	name, ok := strings.CutPrefix(c.name, "MPI_")
	if !c.id.Is(FactPointToPoint) || !ok {
		if c.id.IsAny(FactSynchronous | FactBuffered | FactReady | FactProbes | FactMatched) {
			t.Errorf("%s: has the facts %q without point-to-point", c.name, c.facts)
		}
		return
	}
	if immediate := name[0] == 'I'; immediate != (c.id.Is(FactNonblocking) || c.id.Is(FactTests|FactProbes)) {
		t.Errorf("%s: the name and the facts %q disagree on whether it is nonblocking", c.name, c.facts)
	}
	low := strings.ToLower(name)
	for part, f := range map[string]Facts{"ssend": FactSynchronous, "bsend": FactBuffered, "rsend": FactReady,
		"probe": FactProbes} {
		if strings.Contains(low, part) != c.id.Is(f) {
			t.Errorf("%s: the name and the facts %q disagree on %q", c.name, c.facts, f)
		}
	}
	sends := strings.Contains(low, "send")
	receives := strings.Contains(low, "recv")
	if sends != c.id.Is(FactSends) || receives != c.id.Is(FactReceives) {
		t.Errorf("%s: the name and the facts %q disagree on the direction", c.name, c.facts)
	}
}

// The calls have the sides that MPI gives them, large counts or not.
func TestSides(t *testing.T) {
	want := map[string]string{"MPI_Put": "s", "MPI_Rput": "s", "MPI_Accumulate": "s", "MPI_Raccumulate": "s",
		"MPI_Get": "r", "MPI_Rget": "r",
		"MPI_Get_accumulate": "sr", "MPI_Rget_accumulate": "sr", "MPI_Fetch_and_op": "sr", "MPI_Compare_and_swap": "sr"}
	for _, s := range []string{"", "_all", "_at", "_at_all", "_shared", "_ordered", "_all_begin", "_at_all_begin",
		"_ordered_begin"} {
		want["MPI_File_write"+s], want["MPI_File_read"+s] = "s", "r"
	}
	for _, s := range []string{"", "_all", "_at", "_at_all", "_shared"} {
		want["MPI_File_iwrite"+s], want["MPI_File_iread"+s] = "s", "r"
	}
	for i, c := range Calls {
		send, recv := Sides(CallID(i))
		got := map[bool]string{true: "s"}[send] + map[bool]string{true: "r"}[recv]
		if w := want[strings.TrimSuffix(c.Name, "_c")]; got != w {
			t.Errorf("%s has the sides %q, want %q", c.Name, got, w)
		}
	}
}
