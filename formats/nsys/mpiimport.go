package nsys

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/formats/calls"
	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// isMPI reports whether the exports are imported by their calls of MPI: there are more of these than operations of
// NCCL. Calls without ranks cannot be imported.
func isMPI(exports []*export) bool {
	mpi, nccl := callsOf(exports)
	return mpi > nccl && (nccl == 0 || haveRanks(exports))
}

// callsOf returns the numbers of calls of MPI and of operations of NCCL.
func callsOf(exports []*export) (mpi, nccl int64) {
	for _, x := range exports {
		mpi += x.mpi
		nccl += x.operations()
	}
	return mpi, nccl
}

// haveRanks reports whether exports tell the rank of MPI of a process.
func haveRanks(exports []*export) bool {
	for _, x := range exports {
		for _, p := range x.processes {
			if p.mpiRank >= 0 {
				return true
			}
		}
	}
	return false
}

// importMPI imports the calls of MPI of exports.
func importMPI(ctx context.Context, exports []*export, path, store, name string, o Options) (*schema.Manifest, error) {
	if name == "" {
		var err error
		if name, err = writer.NameOf(path, endings...); err != nil {
			return nil, err
		}
	}
	return importing.Run(ctx, store, name, o.Replace, func(out *writer.Run) (*schema.Manifest, error) {
		return makeMPI(ctx, exports, out, o)
	})
}

// makeMPI reads the calls and writes the run.
func makeMPI(ctx context.Context, exports []*export, out timed.Sink, o Options) (m *schema.Manifest, err error) {
	j, err := readMPI(ctx, exports, o.Progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.kept.Close()) }()
	least, bytes := exports[0].baseNs, int64(0)
	for i, r := range j.ranks {
		least, bytes = min(least, r.export.baseNs), bytes+j.kept.Bytes(int32(i))
	}
	comms := j.newComms()
	var second []*mpiReader
	hosts, hostOf := calls.Hosts(len(j.ranks), func(rank int) string { return j.ranks[rank].export.host })
	run := timed.New(timed.Trace{Comms: comms.comms, AtMost: true, Size: bytes, Hosts: hosts, HostOf: hostOf,
		Open: func(rank int32, learning bool) ([]timed.Reader, error) {
			r, err := j.reader(rank, comms, j.ranks[rank].export.baseNs-least)
			if err != nil {
				return nil, err
			}
			if !learning {
				second = append(second, r)
			}
			return []timed.Reader{r}, nil
		}}, timed.Options{})
	if err := run.Import(ctx, out); err != nil {
		return nil, err
	}
	origin := o.Origin
	origin.Trace = &schema.Trace{Format: format, File: filepath.Base(exports[0].path)}
	return run.Manifest(origin, j.warnings(exports, comms, second)), nil
}

// warnings tell what the exports lack, and what was skipped.
func (j *mpiJob) warnings(exports []*export, comms *mpiComms, second []*mpiReader) []string {
	n := int64(0)
	var t mpiTally
	for i, r := range second {
		n += j.ranks[i].calls
		t.foreign += r.counts.foreign
		t.silent += r.counts.silent
		t.tagless += r.counts.tagless
		t.exchanges += r.counts.exchanges
		t.vague += r.counts.vague
	}
	w := []string{fmt.Sprintf("Exports of Nsight Systems %s: %d calls of MPI were read. They have no statuses, "+
		"datatypes, call sites, payload hashes and members of communicators: what MPI_ANY_SOURCE received is not "+
		"known, and sizes of collectives that are for one rank in one argument and for all in another are null.",
		versions(exports), n)}
	say := func(n int64, what string) {
		if n > 0 {
			w = append(w, fmt.Sprintf("%s: %d.", what, n))
		}
	}
	if !comms.mpich {
		w = append(w, "The exports do not tell which communicator is MPI_COMM_WORLD: one that all ranks used counts "+
			"as it, and others of all ranks have the same order.")
	}
	say(int64(len(comms.made)),
		"Communicators that all ranks used besides MPI_COMM_WORLD; they have all ranks, in its order")
	say(t.foreign, "Calls on communicators whose members the exports do not tell, which have no communicator, "+
		"partner and size")
	say(t.silent,
		"Calls whose partner, root or size the exports do not tell, which have no communicator, partner and size")
	say(t.tagless, "Sends whose tag the exports do not tell, which have none, and whose messages are not in the run")
	say(t.exchanges, "Calls of MPI_Sendrecv, MPI_Isendrecv and those that replace, which send and receive, while "+
		"exports tell one partner, tag and size; they have no communicator, partner and size, and their messages are "+
		"not in the run")
	say(j.nested,
		"Calls that began before another one of their thread had ended, as MPI libraries call MPI, which have no row")
	say(t.vague, "Calls of MPI_Waitany, _Waitsome and MPI_Test*, of which the exports do not tell what they completed")
	if len(j.skipped) > 0 {
		var words []string
		for _, name := range slices.Sorted(maps.Keys(j.skipped)) {
			words = append(words, strings.TrimSpace(fmt.Sprintf("%d %s", j.skipped[name], name)))
		}
		w = append(w, "Calls without a row: "+strings.Join(words[:min(len(words), mostListed)], ", ")+".")
	}
	say(j.nccl, "Operations of NCCL, which are not in the run, as there are more calls of MPI")
	return w
}

// mostListed is the number of functions that are listed by name.
const mostListed = 20
