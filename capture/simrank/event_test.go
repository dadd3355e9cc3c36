package simrank

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
)

var fieldNames = map[string]string{"TimePs": "time_ps", "DelayPs": "delay_ps"}

// A C program that includes sim.h prints what this package thinks it says.
func TestEventIsThatOfTheHeader(t *testing.T) {
	testenv.Need(t, "cc")
	header, err := filepath.Abs("../shim/src/sim.h")
	if err != nil {
		t.Fatal(err)
	}
	var source, want strings.Builder
	fmt.Fprintf(&source, "#include <stddef.h>\n#include <stdio.h>\n#include %q\nint main(void)\n{\n", header)
	kind := reflect.TypeFor[Event]()
	for i := range kind.NumField() {
		f := kind.Field(i)
		name := fieldNames[f.Name]
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		fmt.Fprintf(&source, "\tprintf(\"%s %%zu %%zu %%d\\n\", offsetof(cq_sim_event, %s), sizeof(((cq_sim_event *)0)->%s), (__typeof__(((cq_sim_event *)0)->%s))-1 < 0);\n", name, name, name, name)
		signed := 0
		if f.Type.Kind() >= reflect.Int && f.Type.Kind() <= reflect.Int64 {
			signed = 1
		}
		fmt.Fprintf(&want, "%s %d %d %d\n", name, f.Offset, f.Type.Size(), signed)
	}
	for _, c := range []struct {
		name  string
		value int
	}{
		{"CQ_SIM_VERSION", Version}, {"sizeof(cq_sim_event)", EventBytes}, {"CQ_SIM_ROOT", FlagRoot},
		{"CQ_SIM_DATA", RecordBytes},
		{"CQ_SIM_HELLO", int(Hello)}, {"CQ_SIM_SENT", int(Sent)}, {"CQ_SIM_ENTERED", int(Entered)},
		{"CQ_SIM_RECORDS", int(Records)},
		{"CQ_SIM_SYNC", int(Sync)}, {"CQ_SIM_LEFT", int(Left)}, {"CQ_SIM_ARRIVES", int(Arrives)},
		{"CQ_SIM_LEAVES", int(Leaves)},
		{"CQ_SIM_SYNCED", int(Synced)}, {"CQ_SIM_GONE", int(Gone)},
	} {
		fmt.Fprintf(&source, "\tprintf(\"%s %%d\\n\", (int)%s);\n", c.name, c.name)
		fmt.Fprintf(&want, "%s %d\n", c.name, c.value)
	}
	source.WriteString("\treturn 0;\n}\n")
	program := filepath.Join(t.TempDir(), "event")
	if err := os.WriteFile(program+".c", []byte(source.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-o", program, program+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(want.String(), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("event.go (-) and sim.h (+) differ:\n%s", diff)
	}
}

// No kind and no field of sim.h may be missing here.
func TestEventHasAllOfTheHeader(t *testing.T) {
	text, err := os.ReadFile("../shim/src/sim.h")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`(?m)^\tCQ_SIM_\w+ = (\d+),`).FindAll(text, -1)
	if len(kinds) != 10 {
		t.Errorf("sim.h has %d kinds, event.go 10: %s", len(kinds), kinds)
	}
	body := regexp.MustCompile(`(?s)typedef struct \{(.*)\} cq_sim_event`).FindSubmatch(text)
	if body == nil {
		t.Fatal("no cq_sim_event in sim.h")
	}
	if n, want := len(regexp.MustCompile(`(?m)^\tu?int\d+_t \w+;`).FindAll(body[1], -1)),
		reflect.TypeFor[Event]().NumField(); n != want {
		t.Errorf("cq_sim_event has %d fields, Event %d", n, want)
	}
}

// On this machine, little endian, an Event's bytes are its memory.
func TestDecodeAndAppend(t *testing.T) {
	want := Event{Kind: Leaves, Call: 0x0102, Rank: -3, Peer: 5, Tag: -9, Flags: 0xf1f2f3f4, Spare: -1, Key: 1 << 63,
		N: 77, TimePs: -4097, DelayPs: 1 << 62, Bytes: 12345678901, Received: -2}
	b := want.append(nil)
	if got := *(*Event)(unsafe.Pointer(unsafe.SliceData(b))); got != want || len(b) != EventBytes {
		t.Errorf("got %+v in %d bytes", got, len(b))
	}
	var got Event
	got.decode(b)
	if got != want {
		t.Errorf("got %+v", got)
	}
}
