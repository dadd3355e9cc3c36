package nsys

import (
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// tables are those of Nsight Systems' SQLite Schema Reference, with the columns that are read.
const tables = `
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, name TEXT NOT NULL, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
	streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
	shortName INTEGER NOT NULL, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER,
	correlationId INTEGER, nameId INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER,
	textId INTEGER, domainId INTEGER, binaryData TEXT, eventId INTEGER NOT NULL PRIMARY KEY);
CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL, idx INTEGER NOT NULL,
	type INTEGER, name TEXT, offset INTEGER);
CREATE TABLE MPI_RANKS (globalTid INTEGER NOT NULL, rank INTEGER NOT NULL);
CREATE TABLE MPI_P2P_EVENTS (start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, textId INTEGER, commHandle INTEGER,
	commUid INTEGER, tag INTEGER, remoteRank INTEGER, size INTEGER, requestHandle INTEGER);
CREATE TABLE MPI_COLLECTIVES_EVENTS (start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, textId INTEGER,
	commHandle INTEGER, commUid INTEGER, rootRank INTEGER, size INTEGER, recvSize INTEGER, requestHandle INTEGER);
CREATE TABLE MPI_START_WAIT_EVENTS (start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, textId INTEGER,
	requestHandle INTEGER);
CREATE TABLE MPI_OTHER_EVENTS (start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, textId INTEGER);
`

// database is an export that a test writes.
type database struct {
	t       testing.TB
	db      *sql.DB
	path    string
	strings map[string]int
}

func newDatabase(t testing.TB, dir, name string) *database {
	t.Helper()
	d := reopen(t, filepath.Join(dir, name))
	d.exec("PRAGMA page_size = 512") // small for fuzzing
	d.exec("PRAGMA synchronous = OFF")
	d.exec(tables)
	t.Cleanup(d.close)
	return d
}

// reopen opens a database to change it.
func reopen(t testing.TB, path string) *database {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return &database{t: t, db: db, path: path, strings: map[string]int{}}
}

func (d *database) close() {
	if err := d.db.Close(); err != nil {
		d.t.Error(err)
	}
}

func (d *database) exec(text string, values ...any) {
	d.t.Helper()
	if _, err := d.db.Exec(text, values...); err != nil {
		d.t.Fatalf("%s: %v", text, err)
	}
}

// text returns the number of a text.
func (d *database) text(value string) int {
	d.t.Helper()
	id, ok := d.strings[value]
	if !ok {
		id = len(d.strings) + 3
		d.strings[value] = id
		d.exec("INSERT INTO StringIds VALUES (?, ?)", id, value)
	}
	return id
}

// thread is the number of the only thread of a process that has one, and globalPid that of its process.
func thread(pid int) int64    { return globalPid(pid) + int64(pid) }
func globalPid(pid int) int64 { return 1<<48 + int64(pid)<<24 }

// kernel adds a kernel with its launch at a time; launched before 0: without one.
func (d *database) kernel(pid, device, stream int, name string, launched, start, end int) {
	d.t.Helper()
	id := d.text(name)
	correlation := d.count("CUPTI_ACTIVITY_KIND_KERNEL") + 100
	d.exec("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)", start, end, device, stream,
		correlation, globalPid(pid), id, id)
	if launched >= 0 {
		d.exec("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", launched, launched+1, thread(pid),
			correlation,
			d.text("cudaLaunchKernelExC_v11060"))
	}
}

func (d *database) count(table string) (n int) {
	d.t.Helper()
	if err := d.db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

// span adds a range of NVTX, with a payload if it is not nil. Names of NCCL's functions are registered strings.
func (d *database) span(pid int, name string, start, end int, payload any) {
	d.t.Helper()
	var text, id any
	if text = name; strings.HasPrefix(name, "nccl") && !strings.Contains(name, ":") {
		text, id = nil, d.text(name)
	}
	d.exec("INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, textId, domainId, binaryData) "+
		"VALUES (?, ?, 59, ?, ?, ?, 1, ?)", start, end, text, thread(pid), id, payload)
}

// The layouts of payloads, by NCCL's src/include/nvtx.h and nvtx_payload_schemas.h.
const (
	layoutInit   = 1<<24 + 0
	layoutGather = 1<<24 + 4 // ncclAllGather and others with a size alone
	layoutRoot   = 1<<24 + 6
	layoutPeer   = 1<<24 + 9
)

// layouts adds the layouts. Types and offsets are those of the C structs: uint64_t, size_t, int.
func (d *database) layouts() {
	d.t.Helper()
	for _, l := range []struct {
		id     int
		idx    int
		typ    int
		name   string
		offset any
	}{{layoutInit, 0, 18, "NCCL communicator ID", nil}, {layoutInit, 1, 5, "No. of ranks", 8}, {layoutInit, 2, 5,
		"Rank", 12},
		{layoutInit, 3, 5, "CUDA device", 16}, {layoutGather, 0, 18, "NCCL communicator ID", nil},
		{layoutGather, 1, 22, "Message size [bytes]", 8}, {layoutRoot, 0, 18, "NCCL communicator ID", nil},
		{layoutRoot, 1, 22, "Message size [bytes]", 8}, {layoutRoot, 2, 5, "Root", 16},
		{layoutPeer, 0, 18, "NCCL communicator ID", nil}, {layoutPeer, 1, 22, "Message size [bytes]", 8},
		{layoutPeer, 2, 5, "Peer rank", 16}} {
		d.exec("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, ?, ?, ?, ?, ?)", l.id, l.idx, l.typ, l.name,
			l.offset)
	}
}

// blob is a payload as it is in binaryData: 8 bytes each for the domain, the layout, the size, and where the payload
// begins, then a uint64_t and the rest, padded to 8 bytes as C does.
func blob(layout int, comm uint64, more ...any) []byte {
	body := binary.LittleEndian.AppendUint64(nil, comm)
	for _, v := range more {
		switch v := v.(type) {
		case int:
			body = binary.LittleEndian.AppendUint64(body, uint64(v))
		case int32:
			body = binary.LittleEndian.AppendUint32(body, uint32(v))
		}
	}
	for len(body)%8 > 0 {
		body = append(body, 0)
	}
	var b []byte
	for _, v := range []int{1, layout, len(body), 32} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return append(b, body...)
}

// inHex is a payload as text.
func inHex(b []byte) string { return hex.EncodeToString(b) }

// imported imports exports as a run that breaks no rule.
func imported(t testing.TB, path string) (*formatstest.Run, error) {
	t.Helper()
	return formatstest.Import(t, func(k *formatstest.Memory) (*schema.Manifest, error) {
		return importInto(path, k)
	})
}

// importInto does what ImportPath does, into memory.
func importInto(path string, k *formatstest.Memory) (*schema.Manifest, error) {
	ctx := context.Background()
	exports, err := readAll(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	if isMPI(exports) {
		return makeMPI(ctx, exports, k, Options{})
	}
	ranks, how, err := ranksOf(exports)
	if err != nil {
		return nil, err
	}
	return training.Collect(ctx, ranks, k.Write, how)
}

func mustImport(t testing.TB, path string) *formatstest.Run {
	t.Helper()
	r, err := imported(t, path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantRows compares rows, each with its times after it.
func wantRows(t *testing.T, r *formatstest.Run, want string) {
	t.Helper()
	var got []string
	for i := range r.Events {
		e := &r.Events[i]
		end := "-"
		if e.EndNs != schema.NullInt64 {
			end = fmt.Sprint(e.EndNs)
		}
		got = append(got, fmt.Sprintf("%s %d-%s", formatstest.Line(e), e.StartNs, end))
	}
	if got, want := strings.Join(got, "\n"), strings.TrimSpace(want); got != want {
		t.Errorf("got\n%s\nwant\n%s\n%s", got, want, strings.Join(r.Warnings, "\n"))
	}
}

func wantWarning(t *testing.T, r *formatstest.Run, want string) {
	t.Helper()
	if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, want) }) {
		t.Errorf("no warning with %q in\n%s", want, strings.Join(r.Warnings, "\n"))
	}
}

// sample unpacks the public sample.
func sample(t testing.TB) string {
	t.Helper()
	in, err := os.Open("testdata/mfu_2gpu_before.cut.sqlite.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mfu.sqlite")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
