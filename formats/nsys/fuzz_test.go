package nsys

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/schema"
)

// bases are small exports to edit: of NCCL with payloads, and of MPI.
func bases(t testing.TB) (all [][]byte) {
	t.Helper()
	for i, fill := range []func(d *database){fillNCCL, fillMPI} {
		d := newDatabase(t, t.TempDir(), fmt.Sprintf("base%d.sqlite", i))
		fill(d)
		data, err := os.ReadFile(d.path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	return all
}

func fillNCCL(d *database) {
	d.layouts()
	for i, pid := range []int{7, 8} {
		d.span(pid, "ncclCommInitRank", 1, 2, blob(layoutInit, 5, int32(2), int32(i), int32(0)))
		d.span(pid, "step 3", 90, 100, nil)
		d.span(pid, "nccl:all_to_all, op_id = 12", 100, 300, nil)
		d.span(pid, "ncclGroupStart", 110, 111, nil)
		d.span(pid, "ncclSend", 120, 125, blob(layoutPeer, 5, 30, int32(1-i)))
		d.span(pid, "ncclRecv", 130, 135, blob(layoutPeer, 5, 30, int32(1-i)))
		d.span(pid, "ncclGroupEnd", 200, 290, nil)
		d.kernel(pid, i, 5, "ncclDevKernel_SendRecv", 220, 1000, 1100)
		d.kernel(pid, i, 3, "gemm", 230, 1000, 1100)
		d.span(pid, "ncclBroadcast", 400, 500, inHex(blob(layoutRoot, 5, 60, int32(1))))
		d.kernel(pid, i, 5, "ncclDevKernel_Broadcast_RING_LL", 450, 1300, 1400)
	}
}

func fillMPI(d *database) {
	for rank, pid := range []int{50, 51} {
		d.rank(pid, rank)
		d.call("MPI_COLLECTIVES_EVENTS", pid, "MPI_Bcast", 30, 40, "commHandle, commUid, rootRank, size", 77, 3, 1,
			4097)
		d.other(pid, "MPI_Finalize", 200, 210)
	}
	d.call("MPI_P2P_EVENTS", 50, "MPI_Send", 50, 55, "commHandle, commUid, tag, remoteRank, size", 77, 3, 9, 1, 400)
	d.call("MPI_P2P_EVENTS", 51, "MPI_Irecv", 45, 46, "commHandle, commUid, tag, remoteRank, size, requestHandle", 77,
		3, 9, 0,
		400, 12)
	d.call("MPI_START_WAIT_EVENTS", 51, "MPI_Waitall", 50, 60, "requestHandle", 12)
}

// tryImport imports a file as far as it goes. Runs of many ranks are left out, for which a test has no memory.
func tryImport(t *testing.T, path string) {
	exports, err := readAll(context.Background(), path, nil)
	if err != nil {
		return
	}
	if !isMPI(exports) && newJob(exports).ranks > 1<<12 {
		return
	}
	_, _ = formatstest.Import(t, func(k *formatstest.Memory) (*schema.Manifest, error) { return importInto(path, k) })
}

// Edited bytes of a database are an error or a run that breaks no rule. Each edit is 3 bytes of a place and a value.
func FuzzBytesEdited(f *testing.F) {
	all := bases(f)
	f.Add(uint8(0), []byte{0, 0, 100, 13})
	f.Add(uint8(1), []byte{0, 16, 3, 200, 0, 0, 28, 1})
	f.Fuzz(func(t *testing.T, base uint8, edits []byte) {
		data := append([]byte(nil), all[int(base)%len(all)]...)
		for ; len(edits) >= 4; edits = edits[4:] {
			data[int(binary.BigEndian.Uint32(edits)>>8)%len(data)] = edits[3]
		}
		path := filepath.Join(t.TempDir(), "edited.sqlite")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		tryImport(t, path)
	})
}

// fuzzed are the tables whose rows FuzzRowsEdited edits.
var fuzzed = []string{"NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME",
	"NVTX_PAYLOAD_SCHEMA_ENTRIES", "MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_RANKS",
	"StringIds", "TARGET_INFO_SESSION_START_TIME"}

// Edited values of rows are an error or a run that breaks no rule.
func FuzzRowsEdited(f *testing.F) {
	all := bases(f)
	f.Add(uint8(0), uint8(0), uint8(0), uint8(2), int64(-5), "", uint8(1), uint8(1), uint8(1), int64(1<<40))
	f.Add(uint8(0), uint8(8), uint8(1), uint8(2), int64(0), "nccl:send 0->1", uint8(0), uint8(2), uint8(0), int64(3))
	f.Add(uint8(1), uint8(4), uint8(7), uint8(1), int64(-1), "", uint8(5), uint8(6), uint8(1), int64(-2))
	f.Fuzz(func(t *testing.T, base, table, column, row uint8, value int64, text string, table2, column2, row2 uint8,
		value2 int64) {
		path := filepath.Join(t.TempDir(), "edited.sqlite")
		if err := os.WriteFile(path, all[int(base)%len(all)], 0o644); err != nil {
			t.Fatal(err)
		}
		d := reopen(t, path)
		if text != "" {
			d.edit(table, column, row, text)
		} else {
			d.edit(table, column, row, value)
		}
		d.edit(table2, column2, row2, value2)
		d.close()
		tryImport(t, path)
	})
}

// edit sets a value of a row.
func (d *database) edit(table, column, row uint8, value any) {
	name := fuzzed[int(table)%len(fuzzed)]
	f, err := open(context.Background(), d.path)
	if err != nil {
		d.t.Fatal(err)
	}
	columns := f.columns[name]
	f.close()
	// what a constraint forbids stays as it is
	_, _ = d.db.Exec(fmt.Sprintf("UPDATE %s SET %s = ? WHERE rowid = (SELECT rowid FROM %s LIMIT 1 OFFSET %d)", name,
		quoted(columns[int(column)%len(columns)]), name, row%24), value)
}
