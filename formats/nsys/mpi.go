package nsys

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/commq/commq/formats/spill"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// mpiTables are the tables of calls of MPI.
var mpiTables = []string{"MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS"}

// countMPI counts the calls that communicate.
func countMPI(ctx context.Context, f *file) (n int64, err error) {
	for _, table := range mpiTables[:2] {
		if !f.has(table) {
			continue
		}
		err := f.query(ctx, table, nil, "SELECT count(*) FROM "+quoted(table), func(r *row) { n += r.id })
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// The values of a call that are kept, and the columns that have them.
const (
	mpiStart = iota
	mpiEnd
	mpiThread
	mpiName
	mpiHandle
	mpiUID
	mpiTag
	mpiRemote
	mpiSize
	mpiRecvSize
	mpiRoot
	mpiRequest
	mpiValues
)

var mpiColumns = []string{"start", "end", "globalTid", "textId", "commHandle", "commUid", "tag", "remoteRank", "size",
	"recvSize", "rootRank", "requestHandle"}

// mpiCall is a call of MPI in the form in which it is kept: with numbers in place of the name of its function and of
// its thread. null64 means that the export does not have the value.
type mpiCall [mpiValues]int64

// mpiCallBytes is the length of a kept call.
const mpiCallBytes = 8 * mpiValues

// mpiRank has the facts about a rank from reading all calls.
type mpiRank struct {
	export  *export
	threads map[int64]int64 // number of a thread
	handles map[int64]bool  // of communicators
	uids    map[int64]bool  // of communicators whose handle does not identify them
	calls   int64
	last    map[int64]mpiCall // the latest call of each thread
}

// mpiJob is an import of calls of MPI.
type mpiJob struct {
	ranks   []*mpiRank
	kept    *spill.File
	skipped map[string]int64 // calls without a row, by name
	nested  int64            // calls inside of others
	nccl    int64            // operations that are not imported
}

// mpiTally counts what the passes find.
type mpiTally struct {
	foreign int64 // calls on communicators with unknown members
	silent  int64 // calls with an unknown partner
	// exchanges are calls of MPI_Sendrecv and its variants, whose two messages are unknown.
	exchanges int64
	tagless   int64 // sends with an unknown tag
	vague     int64 // calls that completed unknown requests
}

// readMPI keeps the calls of all exports by rank, in the order of their starts.
func readMPI(ctx context.Context, exports []*export, progress func(read, all int64)) (*mpiJob, error) {
	j := &mpiJob{skipped: map[string]int64{}}
	if err := j.place(exports); err != nil {
		return nil, err
	}
	var err error
	if j.kept, err = spill.Create(int32(len(j.ranks))); err != nil {
		return nil, err
	}
	for i, x := range exports {
		if err = j.readFile(ctx, x); err != nil {
			break
		}
		if progress != nil {
			progress(int64(i+1), int64(len(exports)))
		}
	}
	if err == nil {
		err = j.kept.Flush()
	}
	if err != nil {
		_ = j.kept.Close() // the first error counts
		return nil, err
	}
	return j, nil
}

// place finds the rank of each process.
func (j *mpiJob) place(exports []*export) error {
	of := map[int32]*export{}
	most := int32(-1)
	for _, x := range exports {
		j.nccl += x.operations()
		for _, p := range x.sorted() {
			if p.mpiRank < 0 {
				continue
			}
			if first := of[p.mpiRank]; first != nil {
				return fmt.Errorf("%s and %s: rank %d of MPI twice; want the exports of one job", first.path, x.path,
					p.mpiRank)
			}
			of[p.mpiRank] = x
			most = max(most, p.mpiRank)
		}
	}
	if most < 0 {
		return fmt.Errorf("%s: calls of MPI, and no rank in the table MPI_RANKS; export the report again with a "+
			"newer nsys",
			exports[0].path)
	}
	for rank := range most + 1 {
		if of[rank] == nil {
			return fmt.Errorf("%s: rank %d of MPI, and no export of rank %d; want those of all ranks, in one folder",
				of[most].path, most, rank)
		}
		j.ranks = append(j.ranks, &mpiRank{export: of[rank], threads: map[int64]int64{}, handles: map[int64]bool{},
			uids: map[int64]bool{}, last: map[int64]mpiCall{}})
	}
	return nil
}

// operations returns the number of operations of NCCL.
func (x *export) operations() (n int64) {
	for _, p := range x.processes {
		functions := int64(0)
		for i := range p.events {
			if p.events[i].is == function || p.events[i].is == annotation {
				functions++
			}
		}
		n += max(functions, int64(len(p.kernels)))
	}
	return n
}

// readFile keeps the calls of an export.
func (j *mpiJob) readFile(ctx context.Context, x *export) error {
	f, err := open(ctx, x.path)
	if err != nil {
		return err
	}
	defer f.close()
	names := map[int64]string{}
	if err := f.query(ctx, "StringIds", []string{"value"}, "SELECT id, substr(value, 1, 64) FROM StringIds "+
		"WHERE value LIKE 'MPI\\_%' ESCAPE '\\'", func(r *row) { names[r.id] = r.text(0) }); err != nil {
		return err
	}
	var parts []string
	for _, table := range mpiTables {
		if f.has(table) {
			parts = append(parts, f.selectMPI(table))
		}
	}
	text := strings.Join(parts, " UNION ALL ") + " ORDER BY 2, 3 DESC, 1"
	var failed error
	err = f.query(ctx, strings.Join(mpiTables, ", "), mpiColumns, text, func(r *row) {
		if failed == nil {
			failed = j.keep(x, names, r)
		}
	})
	if failed != nil {
		return failed
	}
	return err
}

// selectMPI returns the query of a table of calls.
func (f *file) selectMPI(table string) string {
	words := []string{f.number(table)}
	for _, c := range mpiColumns {
		if f.hasColumn(table, c) {
			words = append(words, quoted(c))
		} else {
			words = append(words, "NULL")
		}
	}
	return "SELECT " + strings.Join(words, ", ") + " FROM " + quoted(table)
}

// keep keeps a call of a process that is a rank.
func (j *mpiJob) keep(x *export, names map[int64]string, r *row) error {
	p := x.processes[pidOf(r.integer(mpiThread, 0))]
	if p == nil || p.mpiRank < 0 {
		if r.err == nil {
			j.skipped["of processes without a rank"]++
		}
		return nil
	}
	name := names[r.integer(mpiName, training.Unknown)]
	call, known := schema.CallByName(name)
	if !known || schema.Calls[call].Recorder == "" || schema.Calls[call].Class == schema.ClassRMA ||
		schema.Calls[call].Class == schema.ClassIO {
		j.skipped[name]++
		return nil
	}
	var c mpiCall
	for i := range c {
		c[i] = r.integer(i, null64)
	}
	c[mpiStart] = r.time(mpiStart)
	if c[mpiEnd] != null64 {
		c[mpiStart], c[mpiEnd] = x.span(r, mpiStart, mpiEnd)
	}
	if r.err != nil {
		return nil // the query ends with it
	}
	rank := j.ranks[p.mpiRank]
	thread, seen := rank.threads[c[mpiThread]]
	if !seen {
		thread = int64(len(rank.threads))
		rank.threads[c[mpiThread]] = thread
	}
	c[mpiThread], c[mpiName] = thread, int64(call)
	if before, ok := rank.last[thread]; ok && before[mpiEnd] != null64 && c[mpiStart] < before[mpiEnd] &&
		!c.isSame(&before) {
		j.nested++
		return nil
	}
	rank.last[thread] = c
	rank.see(&c)
	var text [mpiCallBytes]byte
	for i, v := range c {
		binary.LittleEndian.PutUint64(text[8*i:], uint64(v))
	}
	return j.kept.Append(p.mpiRank, text[:])
}

// see notes the communicator of a call.
func (m *mpiRank) see(c *mpiCall) {
	m.calls++
	if c[mpiHandle] == null64 {
		return
	}
	m.handles[c[mpiHandle]] = true
	if uid := c[mpiUID]; uid != null64 && uid != 0 && c[mpiHandle] != mpichWorld && c[mpiHandle] != mpichSelf {
		m.uids[uid] = true
	}
}

// next reads a kept call; false after the last.
func (c *mpiCall) next(in io.Reader) (bool, error) {
	var text [mpiCallBytes]byte
	if _, err := io.ReadFull(in, text[:]); err != nil {
		if err == io.EOF {
			err = nil
		}
		return false, err
	}
	for i := range c {
		c[i] = int64(binary.LittleEndian.Uint64(text[8*i:]))
	}
	return true, nil
}
