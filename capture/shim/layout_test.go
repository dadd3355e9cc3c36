package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/testenv"
)

// twins are the structs of spool.h and of layout.go, field by field.
var twins = []struct {
	c      string
	golang any
}{
	{"cq_header", spool.Header{}},
	{"cq_call", spool.Call{}},
	{"cq_side", spool.Side{}},
	{"cq_coll", spool.Coll{}},
	{"cq_part", spool.Part{}},
	{"cq_parts", spool.Parts{}},
	{"cq_done_entry", spool.DoneEntry{}},
	{"cq_done", spool.Done{}},
	{"cq_start", spool.Start{}},
	{"cq_pre", spool.Pre{}},
	{"cq_wide", spool.Wide{}},
	{"cq_err", spool.Err{}},
	{"cq_def", spool.Def{}},
	{"cq_blob", spool.Blob{}},
	{"cq_def_comm", spool.CommDef{}},
	{"cq_def_type", spool.TypeDef{}},
}

// snake makes recv_bytes of RecvBytes.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if i > 0 && r >= 'A' && r <= 'Z' && !(s[i-1] >= 'A' && s[i-1] <= 'Z') {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

func TestLayout(t *testing.T) {
	testenv.Need(t, "cc")
	var program, want strings.Builder
	program.WriteString("#include <stddef.h>\n#include <stdio.h>\n#include \"spool.h\"\nint main(void)\n{\n")
	for _, w := range twins {
		typ := reflect.TypeOf(w.golang)
		fmt.Fprintf(&program, "printf(\"%s %%zu\\n\", sizeof(%s));\n", w.c, w.c)
		fmt.Fprintf(&want, "%s %d\n", w.c, typ.Size())
		for i := range typ.NumField() {
			f := typ.Field(i)
			name := snake(f.Name)
			if name == "boot_id" || f.Name == "MPILibrary" {
				name = map[string]string{"BootID": "boot_id", "MPILibrary": "mpi_library"}[f.Name]
			}
			fmt.Fprintf(&program, "printf(\"%s.%s %%zu %%zu\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n", w.c, name, w.c, name, w.c, name)
			fmt.Fprintf(&want, "%s.%s %d %d\n", w.c, name, f.Offset, f.Type.Size())
		}
	}
	constants := []struct {
		c     string
		value any
	}{
		{"CQ_END", spool.End}, {"CQ_CALL", spool.KindCall}, {"CQ_SIDE", spool.KindSide}, {"CQ_COLL", spool.KindColl}, {"CQ_PARTS", spool.KindParts},
		{"CQ_DONE", spool.KindDone}, {"CQ_START", spool.KindStart}, {"CQ_PRE", spool.KindPre}, {"CQ_WIDE", spool.KindWide}, {"CQ_ERR", spool.KindErr},
		{"CQ_DEF", spool.KindDef}, {"CQ_BLOB", spool.KindBlob},
		{"CQ_F_ANY_SOURCE", spool.FlagAnySource}, {"CQ_F_ANY_TAG", spool.FlagAnyTag}, {"CQ_F_PROC_NULL", spool.FlagProcNull}, {"CQ_F_ROOT", spool.FlagRoot},
		{"CQ_F_IN_PLACE_S", spool.FlagInPlaceSend}, {"CQ_F_IN_PLACE_R", spool.FlagInPlaceRecv}, {"CQ_F_NO_STATUS", spool.FlagNoStatus}, {"CQ_F_CANCELLED", spool.FlagCancelled},
		{"CQ_DEF_COMM", spool.DefComm}, {"CQ_DEF_COMM_NAME", spool.DefCommName}, {"CQ_DEF_TYPE", spool.DefType}, {"CQ_DEF_SITE", spool.DefSite},
		{"CQ_DEF_CLOCK", spool.DefClock}, {"CQ_DEF_COMM_FREE", spool.DefCommFree},
		{"CQ_TIMER_MONOTONIC", spool.TimerMonotonic}, {"CQ_TIMER_TSC", spool.TimerTSC}, {"CQ_TIMER_CNTVCT", spool.TimerCNTVCT},
		{"CQ_CLOCK_NONE", spool.ClockNone}, {"CQ_CLOCK_WALL", spool.ClockWall}, {"CQ_CLOCK_CPU", spool.ClockCPU},
		{"CQ_ENDED_NOT", spool.EndedNot}, {"CQ_ENDED_FINALIZED", spool.EndedFinalized}, {"CQ_ENDED_ABORTED", spool.EndedAborted},
		{"CQ_SPOOL_VERSION", spool.Version}, {"CQ_HEADER_BYTES", spool.HeaderBytes}, {"CQ_SLOT_BYTES", spool.SlotBytes},
	}
	for _, c := range constants {
		fmt.Fprintf(&program, "printf(\"%s %%d\\n\", %s);\n", c.c, c.c)
		fmt.Fprintf(&want, "%s %d\n", c.c, c.value)
	}
	program.WriteString("puts(CQ_SPOOL_MAGIC);\nreturn 0;\n}\n")
	want.WriteString(spool.Magic + "\n")
	dir := t.TempDir()
	source, exe := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
	if err := os.WriteFile(source, []byte(program.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if o := run(t, nil, "cc", "-Isrc", "-o", exe, source); o.status != 0 {
		t.Fatal(o.stderr)
	}
	got := run(t, nil, exe).stdout
	for i, line := range strings.Split(want.String(), "\n") {
		if lines := strings.Split(got, "\n"); i >= len(lines) || lines[i] != line {
			t.Fatalf("spool.h: %q; layout.go: %q", lines[min(i, len(lines)-1)], line)
		}
	}
}
