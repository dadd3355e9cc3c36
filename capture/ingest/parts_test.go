package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

const testJobID = "0000000000000abc"

// nodes links the files of a spool into n folders; nodeOf chooses the folder of a rank.
func nodes(t testing.TB, dir string, n int, nodeOf func(rank int) int) []string {
	t.Helper()
	base := t.TempDir()
	var dirs []string
	for i := range n {
		dirs = append(dirs, filepath.Join(base, fmt.Sprint(i)))
		if err := os.Mkdir(dirs[i], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	job, err := Find(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range job.Files {
		var rank int
		if _, err := fmt.Sscanf(strings.SplitN(name, ".", 3)[1], "%d", &rank); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(dir, name), filepath.Join(dirs[nodeOf(rank)], name)); err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}

// ingestOne ingests one folder into run of the store.
func ingestOne(ctx context.Context, store, dir string, o PartOptions) (*schema.Manifest, error) {
	p, err := writer.OpenParts(store, "run", testJobID, false)
	if err != nil || p == nil {
		return nil, err
	}
	return IngestPart(ctx, dir, p, o)
}

// together ingests all folders at once; it returns the manifest of the one that made the run.
func together(t testing.TB, store string, dirs []string, o Options) *schema.Manifest {
	t.Helper()
	type result struct {
		m   *schema.Manifest
		err error
	}
	results := make(chan result)
	for _, dir := range dirs {
		go func() {
			m, err := ingestOne(context.Background(), store, dir,
				PartOptions{Options: o, Parts: len(dirs), Patience: time.Minute})
			results <- result{m, err}
		}()
	}
	var made *schema.Manifest
	for range dirs {
		r := <-results
		if r.err != nil {
			t.Fatal(r.err)
		}
		if r.m != nil && made != nil {
			t.Error("two processes made the run")
		}
		if r.m != nil {
			made = r.m
		}
	}
	if made == nil {
		t.Fatal("nobody made the run")
	}
	return made
}

// compareRuns compares the run made in parts with that of one process: everything in the manifest except its files and its hash.
func compareRuns(t *testing.T, name, store string, m *schema.Manifest, whole *result) {
	t.Helper()
	x, y := *m, *whole.Manifest
	for _, z := range []*schema.Manifest{&x, &y} {
		z.Tables, z.Sum = slices.Clone(z.Tables), ""
		for i := range z.Tables {
			z.Tables[i].Files = nil
		}
	}
	if d := diff.Diff(y, x); d != "" {
		t.Errorf("%s: in parts (+) it is another run than whole (-):\n%s", name, d)
	}
	problems, err := writer.Check(context.Background(), filepath.Join(store, "run"))
	if err != nil || len(problems) > 0 {
		t.Errorf("%s: %v %v", name, err, problems)
	}
	entries, err := os.ReadDir(store)
	if err != nil || len(entries) != 1 {
		t.Errorf("%s: the store holds %v (%v), want the run alone", name, entries, err)
	}
}

// Three processes ingest a random program's ranks, dealt out like cards or in ranges, with epochs so short that most
// messages go across some.
func TestPartsMakeTheSameRunAsOneProcess(t *testing.T) {
	for seed := range uint64(8) {
		ranks := 3 + int(seed%5)
		dir, _, _, _ := randomSpool(t, seed, ranks, 100+int(seed)*20)
		o := Options{epochRows: []int64{1 << 20, 60, 7}[seed%3], shardRows: 40, maxShards: 8, Workers: 2,
			Record: []string{RecordAll, RecordCollectives}[seed/6]}
		if seed == 5 {
			o.Calls = []string{"-MPI_I*"}
		}
		whole := ingested(t, dir, o)
		for name, nodeOf := range map[string]func(int) int{
			"dealt out": func(rank int) int { return rank % 3 },
			"ranges":    func(rank int) int { return rank * 3 / ranks },
		} {
			store := t.TempDir()
			m := together(t, store, nodes(t, dir, 3, nodeOf), o)
			compareRuns(t, fmt.Sprintf("seed %d, %s", seed, name), store, m, whole)
		}
		if t.Failed() {
			return
		}
	}
}

// noLocks is a file system whose flock fails, such as Lustre mounted without it.
type noLocks struct{}

func (noLocks) Do(_ *disk.Op, do func() error) error { return do() }

func (noLocks) Lock(string) error { return syscall.ENOSYS }

// Without locks of the file system, processes that finish at the same time wait for each other all the same. A file
// that a killed process left is named.
func TestPartsWithoutLocks(t *testing.T) {
	dir, _, _, _ := randomSpool(t, 2, 6, 100)
	o := Options{epochRows: 60, shardRows: 40, maxShards: 8, Workers: 2}
	whole := ingested(t, dir, o)
	dirs := nodes(t, dir, 3, func(rank int) int { return rank % 3 })
	for range 4 {
		store := t.TempDir()
		t.Cleanup(disk.Over(store, noLocks{}))
		compareRuns(t, "without locks", store, together(t, store, dirs, o), whole)
	}

	store := t.TempDir()
	t.Cleanup(disk.Over(store, noLocks{}))
	parts, err := writer.OpenParts(store, "run", testJobID, false)
	if err != nil {
		t.Fatal(err)
	}
	release, err := parts.Lock("commit")
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan string, 1)
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := ingestOne(ctx, store, dir, PartOptions{Options: o, Parts: 1, Waiting: func(what string) {
			select {
			case waits <- what:
			default: // the first is enough
			}
		}})
		ended <- err
	}()
	select {
	case what := <-waits:
		if !strings.Contains(what, "commit.locked exists: another process holds it, or a killed process left it") {
			t.Error(what)
		}
	case err := <-ended:
		t.Fatalf("it did not wait for the lock: %v", err)
	}
	if err := errors.Join(release(), <-ended); err != nil {
		t.Error(err)
	}
}

// Ranks on three hosts whose clocks differ, with communicators, hashes, a v-collective, a call that never returned
// and two threads: everything that one part needs to know of another.
func TestPartsExchangeDefinitions(t *testing.T) {
	p := program{ranks: 5, header: func(h *spool.Header) {
		host := h.Rank % 3
		copy(h.Host[:], fmt.Sprintf("node%d", host))
		h.Clock0Tick, h.Clock0Ns = 0, 1000*int64(host)
		h.OffsetInitNs, h.OffsetInitErrorNs, h.OffsetInitAtNs = 1000*int64(host), 3, 1000*int64(host)
		h.Hash = spool.AlgorithmCRC64
		if h.Rank == 4 {
			h.Ended = spool.EndedNot
		}
	}, body: func(rank int, s *script) {
		making(s, schema.CallCommSplit, rank, 2, 0, 0, []int32{4, 3, 2, 1, 0}, nil)
		s.call(schema.CallSend, to(2, 4-int32(rank+1)%5, 9, 7, 0)) // rank k of communicator 2 is world rank 4-k
		s.Hash(sentHash(0, 77+uint64(rank)))
		s.call(schema.CallRecv, received(2, 4-int32(rank+4)%5, 9, 28, 0))
		s.call(schema.CallAlltoallv, func(c *spool.Call) { c.Comm = 0 })
		coll := spoolgen.NewColl(1)
		coll.Rdtype, coll.Rcount, coll.Sbytes, coll.Rbytes = 0, 5, 20, 20
		s.Coll(coll)
		var with []spool.Part
		for peer := range int32(5) {
			with = append(with, spool.Part{Peer: peer, SendBytes: 4, RecvBytes: 4})
		}
		s.Parts(with...)
		if rank == 4 {
			c := spoolgen.NewCall(schema.CallRecv, s.now, 0)
			c.Comm, c.Peer, c.Tag, c.Count = 0, 3, 11, 4097
			s.Call(&c)
		}
	}, second: func(rank int, s *script) {
		s.now = 5
		s.call(schema.CallSend, to(0, int32(rank+2)%5, 13, 3, 0))
	}}
	dir := p.write(t)
	o := Options{epochRows: 9, shardRows: 10, maxShards: 8, Workers: 2}
	whole := ingested(t, dir, o)
	if whole.Counts.Messages != 5 || whole.Counts.UnmatchedSends != 5 || whole.Counts.InProgress != 1 ||
		len(whole.Warnings) == 0 || len(whole.Origin.Hosts) != 3 || whole.Epochs < 2 {
		t.Fatalf("the run that parts are compared with: %+v", whole.Manifest)
	}
	store := t.TempDir()
	m := together(t, store, nodes(t, dir, 3, func(rank int) int { return rank % 3 }), o)
	compareRuns(t, "three hosts", store, m, whole)
}

// Each process is stopped after each step that it waits for, and started again. Nothing looks like a run before the
// end, and then it is the same one.
func TestPartsContinueWhereTheyWereStopped(t *testing.T) {
	dir, _, _, _ := randomSpool(t, 17, 6, 400)
	o := Options{epochRows: 60, shardRows: 40, maxShards: 8, Workers: 2}
	whole := ingested(t, dir, o)
	dirs := nodes(t, dir, 2, func(rank int) int { return rank % 2 })
	store := t.TempDir()
	stopped := 0
	var made *schema.Manifest
	for i := 0; made == nil; i++ {
		if i > 20 {
			t.Fatal("the run is never made")
		}
		ctx, cancel := context.WithCancel(context.Background())
		m, err := ingestOne(ctx, store, dirs[i%2],
			PartOptions{Options: o, Parts: 2, Waiting: func(string) { stopped++; cancel() }})
		cancel()
		runs, e := writer.List(store)
		if e != nil {
			t.Fatal(e)
		}
		if made = m; made == nil && (err == nil || len(runs) > 0) {
			t.Fatalf("stopped with %v; the store lists %v", err, runs)
		}
	}
	if stopped != 3 {
		t.Errorf("stopped %d times, want at indexes, receives and rows", stopped)
	}
	compareRuns(t, "stopped and begun again", store, made, whole)
}

// TestIndexOfOtherReceives gives the receives of a part an index that is not theirs: nothing is read, and no memory
// taken for it.
func TestIndexOfOtherReceives(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "receives"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := int64(len(recvBytes(make([]match.Recv, 3))))
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at, count int64
		fits      bool
	}{{0, 3, true}, {size / 3, 2, true}, {0, 4, false}, {size / 3, 3, false}, {-1, 1, false}, {0, -1, false},
		{0, 1 << 60, false}, {1 << 62, 0, false}} {
		r := receivesReader{f, []receiveChunk{{0, 2, 0, 1, 0}, {0, 1, c.at, c.count, 0}}}
		if err := r.choose(1); (err == nil) != c.fits || err == nil && len(r.chunks) != 1 {
			t.Errorf("%+v: %v, %v", c, err, r.chunks)
		}
	}
}

// A bit of the receives that flips between two steps is an error.
func TestChangedReceivesAreRefused(t *testing.T) {
	parts, err := writer.OpenParts(t.TempDir(), "run", "job", false)
	if err != nil {
		t.Fatal(err)
	}
	f, err := createReceives(parts, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []match.Recv{{Channel: match.Channel{Src: 1}}, {Channel: match.Channel{Src: 2}}}
	if err := errors.Join(f.write(0, 1, want), f.write(5, 1, want[1:]), f.finish(parts, 0), f.file.Close()); err != nil {
		t.Fatal(err)
	}
	name := parts.Path(partFile(0, receivesEnding) + dataEnding)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-9] ^= 4
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var x receiveIndex
	if err := readPartFile(parts, partFile(0, receivesEnding), &x); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := receivesReader{file, x.Chunks}
	if got, err := r.read(0); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := r.read(5); err == nil ||
		!strings.Contains(err.Error(), "was changed: the checksum of the receives of epoch 5") {
		t.Errorf("%v", err)
	}
}

// A value that unpacks to more than there may be is an error, before there is memory for it.
func TestPartsThatUnpackToMuchAreRefused(t *testing.T) {
	data, err := pack([]int64{1, 3, 5, 1843})
	if err != nil {
		t.Fatal(err)
	}
	u, err := newUnpacker(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer u.zstd.Close()
	u.bytes.Left = 9
	var got []int64
	if err := u.decoder.Decode(&got); err == nil || !strings.Contains(err.Error(), "it unpacks to more than 1024 MiB") {
		t.Errorf("%v, %v", got, err)
	}
}

// What the other parts refuse to read is not written for them.
func TestPartsThatOthersRefuseAreNotWritten(t *testing.T) {
	var b bytes.Buffer
	p, err := newPacker(&b)
	if err != nil {
		t.Fatal(err)
	}
	p.most = 1 << 20
	for range 3 { // the bound is that of a value, not of all
		if err := p.put(make([]byte, 1<<20-4097)); err != nil {
			t.Error(err)
		}
	}
	err = p.put(make([]byte, 1<<20))
	if err == nil || !strings.Contains(err.Error(), "the 1 MiB that they read at once; remove the folder of parts, and ingest") {
		t.Error(err)
	}
}

func TestErrorsOfParts(t *testing.T) {
	dir, _, _, _ := randomSpool(t, 3, 4, 60)
	dirs := nodes(t, dir, 2, func(rank int) int { return rank / 2 })
	store := t.TempDir()
	want := func(name, text string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v, want %q", name, err, text)
		}
	}
	_, err := ingestOne(context.Background(), store, dirs[0],
		PartOptions{Options: Options{Record: RecordMessages}, Parts: 2})
	want("record", "--record messages does not work with --parts", err)
	_, err = ingestOne(context.Background(), store, dirs[0], PartOptions{Parts: 2, Patience: time.Millisecond})
	want("patience", "nothing new for 1ms from 1 of 2 parts: records of 2 of 4 ranks are not there yet; what is done is kept", err)
	_, err = ingestOne(context.Background(), store, dirs[0], PartOptions{Parts: 3, Patience: time.Millisecond})
	want("other options", "was begun with another job or other options; continue with those", err)
	_, err = writer.Create(store, "run", writer.Options{})
	want("create", `run "run" in `+store+` is being written in parts by several processes`, err)

	ctx, cancel := context.WithCancel(context.Background())
	waits, ended := make(chan bool), make(chan error)
	go func() {
		_, err := ingestOne(ctx, store, dirs[0], PartOptions{Parts: 2, Waiting: func(string) { close(waits) }})
		ended <- err
	}()
	<-waits
	_, err = ingestOne(context.Background(), store, dirs[0], PartOptions{Parts: 2})
	want("the same part twice", "another process ingests the part of rank 0; wait for it to end", err)
	cancel()
	want("cancel", "context canceled", <-ended)

	both := t.TempDir()
	go func() {
		_, err := ingestOne(context.Background(), both, dirs[0], PartOptions{Parts: 2, Patience: time.Minute})
		ended <- err
	}()
	_, err = ingestOne(context.Background(), both,
		nodes(t, dir, 2, func(rank int) int { return min(1, rank) })[1], PartOptions{Parts: 2, Patience: time.Minute})
	want("a rank twice", "the records of rank 1 are in two parts", err)
	want("a rank twice", "the records of rank 1 are in two parts", <-ended)
}

// One folder that all processes see; each takes a share of it.
func TestSharesOfOneSpool(t *testing.T) {
	dir, _, _, _ := randomSpool(t, 8, 7, 300)
	o := Options{epochRows: 60, shardRows: 40, maxShards: 8, Workers: 2}
	whole := ingested(t, dir, o)
	store := t.TempDir()
	ended := make(chan error)
	for share := range 3 {
		go func() {
			_, err := ingestOne(context.Background(), store, dir,
				PartOptions{Options: o, Parts: 3, Share: share, Shares: 3, Patience: time.Minute})
			ended <- err
		}()
	}
	for range 3 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	m, err := writer.ReadManifest(filepath.Join(store, "run"))
	if err != nil {
		t.Fatal(err)
	}
	whole.Manifest, err = writer.ReadManifest(whole.dir)
	if err != nil {
		t.Fatal(err)
	}
	compareRuns(t, "shares", store, m, whole)
}
