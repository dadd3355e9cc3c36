package nsys

import (
	"fmt"
	"slices"
	"strings"
)

// found says what there is in exports without an operation.
func (j *job) found() string {
	kernels, ranges, launched := int64(0), 0, 0
	for _, x := range j.exports {
		for _, p := range x.processes {
			kernels += p.read
			ranges += len(p.events)
			launched += len(p.kernels)
		}
	}
	return fmt.Sprintf("%d processes with %d events of CUDA and NVTX; of NCCL %d ranges and %d kernels", j.processes(),
		kernels, ranges, launched)
}

func (j *job) processes() (n int) {
	for _, x := range j.exports {
		n += len(x.processes)
	}
	return n
}

// warnings tell what the exports lack, and how ranks and sizes were found.
func (j *job) warnings() (w []string) {
	say := func(n int64, what string) {
		if n > 0 {
			w = append(w, fmt.Sprintf("%s: %d.", what, n))
		}
	}
	w = append(w, fmt.Sprintf("Exports of Nsight Systems %s. Ranks, one for each GPU of a process, are numbered by %s.",
		versions(j.exports), j.order))
	if absent := j.absent(); absent != "" {
		w = append(w, fmt.Sprintf("No export has operations of these of the %d ranks: %s. Import a folder with the "+
			"exports of all.", j.ranks, absent))
	}
	if len(j.comms) == 0 {
		w = append(w, "The exports have no payloads of NCCL's ranges, and so no sizes, communicators, roots and "+
			"partners of messages: record with NCCL 2.18 or later, and export with --include-blobs=true.")
	}
	t := &j.tally
	unread, endless, backward, mpi := int64(0), int64(0), int64(0), int64(0)
	why := "as there are more operations of NCCL"
	if !haveRanks(j.exports) {
		why = "as no table MPI_RANKS tells the ranks"
	}
	for _, x := range j.exports {
		unread += x.payloads.unread
		endless += x.endless
		mpi += x.mpi
		backward += x.backward
	}
	say(t.waiting, "Operations without a kernel in the export, which have the time of their call")
	say(t.paired, "Kernels that were launched outside of the range of a call, each given to the first call of the "+
		"same operation that had none")
	say(t.captured, "Calls of NCCL without a kernel in processes that use CUDA graphs, taken as recorded into a "+
		"graph, which have no row")
	say(t.unplaced, "Calls of NCCL without a kernel in processes that use several GPUs, which have no row")
	say(t.unclosed, "Groups of NCCL without an end (ncclGroupEnd) in the export, whose calls stand alone")
	say(t.undealt, "Calls of NCCL for several GPUs of a process, whose order does not tell which GPU each was for; "+
		"their kernels have rows by their names, or their range of PyTorch has, without sizes")
	say(t.unclaimed, "Calls of NCCL in processes whose kernels cannot be joined with calls (no launches in the "+
		"export); the kernels have rows, and the calls none")
	say(t.silent, "Kernels of sends and receives without the call that asked for them, which have no row")
	say(unread, "Payloads of another layout than the tables tell, not read")
	say(j.assumed, "Communicators that were made outside of the recorded time; they have the ranks that used them, "+
		"in their order")
	say(mpi, "Calls of MPI, which are not in the run, "+why)
	say(endless, "Ranges that did not end in the recorded time, not read")
	say(backward, "Events that end before they begin, which got no length")
	return w
}

// versions lists the versions of Nsight Systems that wrote the exports.
func versions(exports []*export) string {
	var all []string
	for _, x := range exports {
		if x.version != "" && !slices.Contains(all, x.version) {
			all = append(all, x.version)
		}
	}
	if len(all) == 0 {
		return "(version unknown)"
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
