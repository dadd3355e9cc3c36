package paraver

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// magic begins each trace.
const magic = "#Paraver ("

// IsTrace reports whether a file that begins so is a trace of Paraver.
func IsTrace(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }

// task is a rank of the run in the trace.
type task struct {
	threads int64 // that it has
	node    int64 // counted from 1; 0: unknown
}

// layout is the contents of the first lines of a trace.
type layout struct {
	scale int64 // ns of a unit of its times
	// tasks are the ranks: the tasks of application 1, then those of 2, and so on; first has the rank of each
	// application's first task.
	tasks    []task
	first    []int
	comms    *timed.Comms
	commOf   map[commKey]*timed.Comm
	hasWorld bool // a communicator of the trace is MPI_COMM_WORLD
	// foreign is the number of communicators with members that their application does not have.
	foreign int64
	// halves are the groups of intercommunicators whose other group did not come yet.
	halves []half
}

// commKey is a communicator in the trace.
type commKey struct{ application, id int64 }

// header reads the first line of a trace.
func header(line []byte) (*layout, error) {
	if !IsTrace(line) {
		return nil, fmt.Errorf("the line begins with %q; want %q", head(line), magic)
	}
	_, rest, ok := strings.Cut(string(line), "):")
	if !ok {
		return nil, fmt.Errorf("%q has no end of the date; want %sDATE at TIME):LENGTH_ns:...", head(line), magic)
	}
	length, rest, _ := strings.Cut(rest, ":")
	l := &layout{scale: 1000, commOf: map[commKey]*timed.Comm{}}
	if digits, ok := strings.CutSuffix(length, "_ns"); ok {
		l.scale, length = 1, digits
	}
	if _, err := strconv.ParseInt(strings.TrimSuffix(length, "_us"), 10, 64); err != nil {
		return nil, fmt.Errorf("the length of the trace is %q; want a number, with _ns if it is in nanoseconds", length)
	}
	_, rest, err := counted(rest, ":") // nodes, with the CPUs of each
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	text, rest, _ := strings.Cut(rest, ":")
	applications, err := strconv.Atoi(text)
	if err != nil || applications < 1 {
		return nil, fmt.Errorf("the number of applications is %q; want one of at least 1", text)
	}
	for i := range applications {
		rest = strings.TrimLeft(rest, ",:")
		var of []string
		if of, rest, err = counted(rest, ",:"); err == nil {
			err = l.addTasks(of)
		}
		if err != nil {
			return nil, fmt.Errorf("application %d: %w", i+1, err)
		}
	}
	l.comms = timed.NewComms(len(l.tasks))
	return l, nil
}

// counted reads NUMBER(A,B,...), or NUMBER alone, up to one of the bytes of ends.
func counted(text, ends string) (of []string, rest string, err error) {
	at := strings.IndexAny(text, "("+ends)
	if at < 0 || text[at] != '(' {
		if at < 0 {
			at = len(text)
		}
		if _, err := strconv.Atoi(text[:at]); err != nil {
			return nil, "", fmt.Errorf("found %q; want NUMBER(...)", head([]byte(text)))
		}
		return nil, strings.TrimLeft(text[at:], ends), nil
	}
	n, err := strconv.Atoi(text[:at])
	inside, rest, ok := strings.Cut(text[at+1:], ")")
	if err != nil || !ok {
		return nil, "", fmt.Errorf("found %q; want NUMBER(...)", head([]byte(text)))
	}
	if inside != "" {
		of = strings.Split(inside, ",")
	}
	if len(of) != n {
		return nil, "", fmt.Errorf("there are %d in the brackets, and %d before them", len(of), n)
	}
	return of, strings.TrimLeft(rest, ends), nil
}

// Limits that no job exceeds: threads of a rank, intercommunicators of which one group is known.
const mostThreads, mostHalves = 1 << 12, 1 << 12

// addTasks adds the tasks of an application: THREADS:NODE each.
func (l *layout) addTasks(of []string) error {
	if len(of) == 0 {
		return fmt.Errorf("it has no tasks")
	}
	if len(l.tasks)+len(of) > importing.MostRanks {
		return fmt.Errorf("it has %d tasks; want at most %d in all", len(of), importing.MostRanks)
	}
	l.first = append(l.first, len(l.tasks))
	for i, text := range of {
		threads, node, _ := strings.Cut(text, ":")
		t, err := strconv.ParseInt(threads, 10, 32)
		n, err2 := strconv.ParseInt(node, 10, 32)
		if err != nil || err2 != nil || t < 1 || n < 0 {
			return fmt.Errorf("task %d is %q; want THREADS:NODE", i+1, text)
		}
		if t > mostThreads {
			return fmt.Errorf("task %d has %d threads; want at most %d", i+1, t, mostThreads)
		}
		l.tasks = append(l.tasks, task{threads: t, node: n})
	}
	return nil
}

// place returns the rank of a task and the number of a thread, both counted from 0.
func (l *layout) place(application, task, thread int64) (rank, number int32, err error) {
	if application < 1 || application > int64(len(l.first)) {
		return 0, 0, fmt.Errorf("application %d; the first line has %d", application, len(l.first))
	}
	r, ok := l.rankOf(application, task)
	if !ok {
		return 0, 0, fmt.Errorf("task %d of application %d; the first line has %d", task, application,
			l.tasksOf(application))
	}
	if thread < 1 || thread > l.tasks[r].threads {
		return 0, 0, fmt.Errorf("thread %d of task %d.%d; the first line has %d", thread, application, task,
			l.tasks[r].threads)
	}
	return r, int32(thread - 1), nil
}

// tasksOf returns the number of tasks of an application that there is.
func (l *layout) tasksOf(application int64) int64 {
	end := len(l.tasks)
	if int(application) < len(l.first) {
		end = l.first[application]
	}
	return int64(end - l.first[application-1])
}

// rankOf returns the rank of a task; false if there is none.
func (l *layout) rankOf(application, task int64) (int32, bool) {
	if application < 1 || application > int64(len(l.first)) || task < 1 || task > l.tasksOf(application) {
		return 0, false
	}
	return int32(l.first[application-1]) + int32(task-1), true
}

// addComm takes a communicator, c:APPLICATION:ID:SIZE:TASK:TASK:...; numbers has the fields after the c. The first one
// of all ranks in order is MPI_COMM_WORLD.
func (l *layout) addComm(numbers []int64) error {
	if len(numbers) < 3 || numbers[2] != int64(len(numbers)-3) {
		return fmt.Errorf("a communicator of %d members has another size; want c:APPLICATION:ID:SIZE:TASK:TASK:...",
			max(0, len(numbers)-3))
	}
	key := commKey{numbers[0], numbers[1]}
	if key.application < 1 || key.application > int64(len(l.first)) {
		return fmt.Errorf("a communicator of application %d; the first line has %d", key.application, len(l.first))
	}
	if _, ok := l.commOf[key]; ok {
		return fmt.Errorf("communicator %d of application %d is defined twice", key.id, key.application)
	}
	var members []int32
	seen := map[int32]bool{}
	for _, number := range numbers[3:] {
		rank, ok := l.rankOf(key.application, number)
		switch {
		case !ok && len(l.first) > 1: // Extrae writes the communicators of each application for all of them
			l.foreign++
			return nil
		case !ok:
			return fmt.Errorf("communicator %d has task %d; the first line has %d", key.id, number, len(l.tasks))
		case seen[rank]:
			return fmt.Errorf("communicator %d has task %d twice", key.id, number)
		}
		seen[rank] = true
		members = append(members, rank)
	}
	if len(members) == 0 {
		return fmt.Errorf("communicator %d has no members", key.id)
	}
	world := l.comms.World()
	if !l.hasWorld && slices.Equal(members, world.Groups[0]) {
		l.hasWorld = true
		l.commOf[key] = world
		return nil
	}
	c := timed.NewComm(schema.CommOther, members)
	l.comms.Add(c)
	l.commOf[key] = c
	return nil
}

// addInter takes an intercommunicator as one of its groups sees it, i:APPLICATION:ID:GROUP:LEADER:PEER:REMOTE LEADER,
// of which numbers has what follows the i.
func (l *layout) addInter(numbers []int64) error {
	if len(numbers) != 6 {
		return fmt.Errorf("an intercommunicator has %d numbers; want i:APPLICATION:ID:GROUP:LEADER:PEER:REMOTE LEADER",
			len(numbers))
	}
	h := half{commKey{numbers[0], numbers[1]}, l.commOf[commKey{numbers[0], numbers[2]}], numbers[3], numbers[5]}
	i := slices.IndexFunc(l.halves, func(o half) bool {
		return o.key.application == h.key.application && o.leader == h.remote && o.remote == h.leader && joins(&o, &h)
	})
	if i < 0 || l.commOf[h.key] != nil {
		if len(l.halves) == mostHalves {
			return fmt.Errorf("there are more than %d intercommunicators of which one group is known", mostHalves)
		}
		l.halves = append(l.halves, h)
		return nil
	}
	o := l.halves[i]
	l.halves = slices.Delete(l.halves, i, i+1)
	a, b := o.group, h.group
	if slices.Min(b.Groups[0]) < slices.Min(a.Groups[0]) {
		a, b = b, a
	}
	c := timed.NewComm(schema.CommInter, a.Groups[0], b.Groups[0])
	l.comms.Add(c)
	l.commOf[h.key], l.commOf[o.key] = c, c
	return nil
}

// joins reports whether two groups may be those of an intercommunicator.
func joins(a, b *half) bool {
	return a.group != nil && b.group != nil && !a.group.Inter() && !b.group.Inter() &&
		!slices.ContainsFunc(a.group.Groups[0], b.group.Has)
}

// half is a group of an intercommunicator: each has a number of its own for it, and knows the leader of the other.
type half struct {
	key            commKey
	group          *timed.Comm
	leader, remote int64
}

// readLayout reads the first line of a trace.
func readLayout(in *lines) (*layout, error) {
	line, err := in.next()
	if err == io.EOF {
		return nil, in.bad("the file is empty; want %s...", magic)
	}
	if err != nil {
		return nil, err
	}
	l, err := header(line)
	if err != nil {
		return nil, in.bad("%w", err)
	}
	return l, nil
}
