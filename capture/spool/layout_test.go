package spool

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
)

// twins are the structs that stand in both spool.h and layout.go.
var twins = []struct {
	c      string
	layout any
}{
	{"cq_header", Header{}}, {"cq_call", Call{}}, {"cq_side", Side{}}, {"cq_coll", Coll{}}, {"cq_parts", Parts{}},
	{"cq_part", Part{}},
	{"cq_done", Done{}}, {"cq_done_entry", DoneEntry{}}, {"cq_start", Start{}}, {"cq_pre", Pre{}},
	{"cq_wide", Wide{}}, {"cq_err", Err{}},
	{"cq_def", Def{}}, {"cq_blob", Blob{}}, {"cq_def_comm", CommDef{}}, {"cq_def_type", TypeDef{}},
	{"cq_hashes", Hashes{}}, {"cq_rma", RMA{}}, {"cq_io", IO{}}, {"cq_def_module", ModuleDef{}},
	{"cq_sum", Sum{}}, {"cq_base", Base{}}, {"cq_block", Block{}},
}

// constants are the values that stand in both.
var constants = map[string]int{
	"CQ_SPOOL_VERSION": Version, "CQ_HEADER_BYTES": HeaderBytes, "CQ_SLOT_BYTES": SlotBytes,
	"CQ_END": int(End), "CQ_CALL": int(KindCall), "CQ_SIDE": int(KindSide), "CQ_COLL": int(KindColl),
	"CQ_PARTS": int(KindParts), "CQ_DONE": int(KindDone),
	"CQ_START": int(KindStart), "CQ_PRE": int(KindPre), "CQ_WIDE": int(KindWide), "CQ_ERR": int(KindErr),
	"CQ_DEF": int(KindDef), "CQ_BLOB": int(KindBlob), "CQ_HASH": int(KindHash), "CQ_RMA": int(KindRMA),
	"CQ_IO": int(KindIO), "CQ_SUM": int(KindSum), "CQ_BASE": int(KindBase), "CQ_WINDOW_BYTES": WindowBytes, "CQ_SUM_GAP": SumGap,
	"CQ_HASH_SENT": HashSent, "CQ_HASH_RECEIVED": HashReceived, "CQ_HAS_HASH": HasHash, "CQ_HAS_SUM": HasSum,
	"CQ_HAS_HEAD":       HasHead,
	"CQ_ALGORITHM_NONE": AlgorithmNone, "CQ_ALGORITHM_CRC64": AlgorithmCRC64, "CQ_ALGORITHM_CRC32": AlgorithmCRC32,
	"CQ_COUNTERS_NONE": CountersNone, "CQ_COUNTERS_PERF": CountersPerf, "CQ_COUNTERS_FAKE": CountersFake,
	"CQ_DEF_MODULE": DefModule, "CQ_DEF_LABEL": DefLabel, "CQ_DEF_RETURN": DefReturn,
	"CQ_F_ANY_SOURCE": FlagAnySource, "CQ_F_ANY_TAG": FlagAnyTag, "CQ_F_PROC_NULL": FlagProcNull, "CQ_F_ROOT": FlagRoot,
	"CQ_F_IN_PLACE_S": FlagInPlaceSend, "CQ_F_IN_PLACE_R": FlagInPlaceRecv, "CQ_F_NO_STATUS": FlagNoStatus,
	"CQ_F_CANCELLED": FlagCancelled, "CQ_F_NO_ERROR": FlagNoError, "CQ_F_TRUNCATED": FlagTruncated,
	"CQ_ERR_TRUNCATE": TruncateError,
	"CQ_DEF_COMM":     DefComm, "CQ_DEF_COMM_NAME": DefCommName, "CQ_DEF_TYPE": DefType, "CQ_DEF_SITE": DefSite,
	"CQ_DEF_CLOCK": DefClock, "CQ_DEF_COMM_FREE": DefCommFree,
	"CQ_TIMER_MONOTONIC": TimerMonotonic, "CQ_TIMER_TSC": TimerTSC, "CQ_TIMER_CNTVCT": TimerCNTVCT,
	"CQ_TIMER_VIRTUAL": TimerVirtual,
	"CQ_CLOCK_NONE":    ClockNone, "CQ_CLOCK_WALL": ClockWall, "CQ_CLOCK_CPU": ClockCPU,
	"CQ_ENDED_NOT": EndedNot, "CQ_ENDED_FINALIZED": EndedFinalized, "CQ_ENDED_ABORTED": EndedAborted,
}

// cName is a field's name in C: SendBytes is send_bytes, BootID boot_id, Template template_.
func cName(field string) string {
	switch field {
	case "Template":
		return "template_"
	case "MPILibrary":
		return "mpi_library"
	case "BootID":
		return "boot_id"
	case "CRC":
		return "crc"
	case "ID":
		return "id"
	case "IDBytes":
		return "id_bytes"
	}
	var b strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// A C program that includes spool.h prints what this package thinks the layout is.
func TestLayoutIsThatOfTheHeader(t *testing.T) {
	testenv.Need(t, "cc")
	header, err := filepath.Abs("../shim/src/spool.h")
	if err != nil {
		t.Fatal(err)
	}
	var source, want strings.Builder
	fmt.Fprintf(&source, "#include <stddef.h>\n#include <stdio.h>\n#include %q\nint main(void)\n{\n", header)
	for _, twin := range twins {
		kind := reflect.TypeOf(twin.layout)
		fmt.Fprintf(&source, "\tprintf(\"%s %%zu\\n\", sizeof(%s));\n", twin.c, twin.c)
		fmt.Fprintf(&want, "%s %d\n", twin.c, kind.Size())
		for i := range kind.NumField() {
			f := kind.Field(i)
			name := cName(f.Name)
			fmt.Fprintf(&source, "\tprintf(\"%s.%s %%zu %%zu\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n",
				twin.c, name, twin.c, name, twin.c, name)
			fmt.Fprintf(&want, "%s.%s %d %d\n", twin.c, name, f.Offset, f.Type.Size())
		}
	}
	for name, value := range constants {
		fmt.Fprintf(&source, "\tprintf(\"%s %%d\\n\", (int)%s);\n", name, name)
		fmt.Fprintf(&want, "%s %d\n", name, value)
	}
	fmt.Fprintf(&source, "\tprintf(\"%%s\\n\", CQ_SPOOL_MAGIC);\n\treturn 0;\n}\n")
	want.WriteString(Magic + "\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "layout.c"), []byte(source.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "layout")
	if out, err := exec.Command("cc", "-o", program, program+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(want.String(), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("layout.go (-) and spool.h (+) differ:\n%s", diff)
	}
}

// A page of zeros behind the last whole slot is all that a killed process can leave.
func TestTails(t *testing.T) {
	asBytes := func(h *Header) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(h)), HeaderBytes) }
	data := make([]byte, HeaderBytes+SlotBytes+40)
	h := Header{HeaderBytes: HeaderBytes, SlotBytes: SlotBytes, Version: Version, Size: 3, Rank: 1}
	copy(h.Magic[:], Magic)
	put := func() { copy(data, asBytes(&h)) }
	put()
	f, err := Parse("killed", data)
	if err != nil || f.Len() != 1 {
		t.Fatalf("%v, %v", f, err)
	}
	h.Ended = EndedFinalized
	put()
	if _, err := Parse("whole", data); err == nil ||
		!strings.Contains(err.Error(), "whole: ends within a record, 40 bytes into it") {
		t.Error(err)
	}
	h.Ended = EndedNot
	put()
	data[len(data)-1] = 1
	if _, err := Parse("killed", data); err == nil {
		t.Error("no error for a tail that is not zeros")
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), "empty"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "missing")); !os.IsNotExist(err) {
		t.Error(err)
	}
}
