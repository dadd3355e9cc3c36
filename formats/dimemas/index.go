package dimemas

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// trace is a file whose header and definitions have been read and whose records have been located.
type trace struct {
	in   io.ReaderAt
	name string // of the file, for messages
	app  string // from the header
	// tasks locates the records of each task.
	tasks  []span
	groups []group
	// groupOf maps the number of a group in the file to its index.
	groupOf map[int64]int
	// offsetsAt is the position of the offset lines according to the header; 0 if it announces none.
	offsetsAt int64
	notes     []string
	skipped   int64 // definitions of files and windows
}

// span locates the records of a task: bytes from begin to end, the line number of the first, and the number of lines
// with a record. begin is 0 for a task without records.
type span struct {
	begin, end, line, records int64
}

// group is the definition of a communicator.
type group struct {
	id, line int64
	tasks    []int32
}

// maxLine limits a line: the header for a million tasks has two megabytes.
const maxLine = 1 << 26

// scanner reads a file line by line.
type scanner struct {
	r    *bufio.Reader
	long []byte
	at   int64 // position of the last line read
	next int64
	line int64 // its number
}

func newScanner(r io.Reader, buffer int, at, line int64) *scanner {
	return &scanner{r: bufio.NewReaderSize(r, buffer), next: at, line: line - 1}
}

// read returns the next line including its end, valid until the next call; io.EOF after the last.
func (s *scanner) read() ([]byte, error) {
	b, err := s.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		s.long = append(s.long[:0], b...)
		for err == bufio.ErrBufferFull && len(s.long) <= maxLine {
			b, err = s.r.ReadSlice('\n')
			s.long = append(s.long, b...)
		}
		if len(s.long) > maxLine {
			return nil, fmt.Errorf("line %d has more than %d bytes; this is no trace of Dimemas", s.line+1, maxLine)
		}
		b = s.long
	}
	if err != nil && (err != io.EOF || len(b) == 0) {
		return nil, err
	}
	s.at = s.next
	s.next += int64(len(b))
	s.line++
	return b, nil
}

// bad returns an error at a line.
func (t *trace) bad(line int64, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", t.name, line, fmt.Errorf(format, args...))
}

func (t *trace) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// openTrace reads the header and the definitions and locates the records of each task.
func openTrace(in io.ReaderAt, size int64, name string) (*trace, error) {
	t := &trace{in: in, name: name, groupOf: map[int64]int{}}
	s := newScanner(io.NewSectionReader(in, 0, size), int(min(size, 1<<20)), 0, 1)
	head, err := s.read()
	if err == io.EOF {
		return nil, t.bad(1, "the file is empty; want the header #DIMEMAS:...")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := t.header(string(trimEnd(head))); err != nil {
		return nil, t.bad(1, "%w", err)
	}
	if err := t.scan(s); err != nil {
		return nil, err
	}
	return t, nil
}

// header reads #DIMEMAS:"name":offsets:tasks(threads,...),communicators[,accelerators[(ids)][,openmp[(ids)]]].
func (t *trace) header(h string) error {
	rest, ok := strings.CutPrefix(h, `#DIMEMAS:"`)
	if !ok {
		return fmt.Errorf("found %s; want the header of a trace of Dimemas, "+
			"#DIMEMAS:\"name\":1,offset:tasks(threads,...),communicators", quoted([]byte(h)))
	}
	if t.app, rest, ok = strings.Cut(rest, `":`); !ok || t.app == "" || strings.Contains(t.app, `"`) {
		return errors.New("header: the name is empty or not closed; want #DIMEMAS:\"name\":")
	}
	offsets, rest, ok := strings.Cut(rest, ":")
	if !ok {
		return errors.New("header: after the name want 1,OFFSET or 0, a colon and the tasks")
	}
	if err := t.headerOffsets(offsets); err != nil {
		return err
	}
	tasks, rest, ok := strings.Cut(strings.TrimLeft(rest, " "), "(")
	n, err := strconv.ParseInt(tasks, 10, 32)
	if !ok || err != nil || n < 1 {
		return fmt.Errorf("header: the number of tasks is %s; want tasks(threads of each,...)", quoted([]byte(tasks)))
	}
	threads, rest, ok := strings.Cut(rest, ")")
	if !ok {
		return errors.New("header: the list of threads is not closed")
	}
	if err := t.headerThreads(n, threads); err != nil {
		return err
	}
	return headerRest(rest)
}

func (t *trace) headerOffsets(s string) error {
	if s == "0" {
		t.note("The header says that the trace has no offsets; Dimemas 5.5.0 fails on such a trace.")
		return nil
	}
	at, ok := strings.CutPrefix(s, "1,")
	n, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || n < 1 {
		return fmt.Errorf("header: the offsets are %s; want 1,POSITION of the lines s: in the file, or 0",
			quoted([]byte(s)))
	}
	t.offsetsAt = n
	return nil
}

func (t *trace) headerThreads(tasks int64, list string) error {
	each := strings.Split(list, ",")
	if int64(len(each)) != tasks {
		return fmt.Errorf("header: %d tasks and %d numbers of threads; want as many", tasks, len(each))
	}
	for task, s := range each {
		n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("header: the threads of task %d are %s; want a number", task, quoted([]byte(s)))
		}
		if n != 1 {
			return fmt.Errorf("header: task %d has %d threads; commq reads tasks of one thread: trace the program "+
				"without OpenMP and accelerators", task, n)
		}
	}
	t.tasks = make([]span, tasks)
	return nil
}

// headerRest reads ,communicators and the fields for accelerators and OpenMP.
func headerRest(rest string) error {
	rest, ok := strings.CutPrefix(rest, ",")
	fields := strings.Split(rest, ",")
	if n, err := strconv.ParseInt(strings.TrimSpace(fields[0]), 10, 32); !ok || err != nil || n < 0 {
		return fmt.Errorf("header: the number of communicators is %s; want tasks(threads,...),communicators",
			quoted([]byte(fields[0])))
	}
	for i, what := range []string{"accelerators", "OpenMP"} {
		if len(fields) <= i+1 {
			return nil
		}
		if s := strings.TrimSpace(fields[i+1]); s != "0" {
			return fmt.Errorf("header: %s tasks with %s; commq reads tasks of one thread", quoted([]byte(s)), what)
		}
	}
	return nil
}

// scan reads the lines after the header once.
func (t *trace) scan(s *scanner) error {
	var last *span
	var offsets []int64
	offsetsAt, lastTask := int64(0), int64(-1)
	ended := func() {
		if last != nil {
			last.end = s.at
		}
		last = nil
	}
	for {
		line, err := s.read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		text := trimEnd(line)
		if len(text) == 0 {
			continue
		}
		switch text[0] {
		case 'd':
			if lastTask >= 0 || offsets != nil {
				return t.bad(s.line, "a definition after the first record; definitions come before the records")
			}
			if err := t.definition(string(text), s.line); err != nil {
				return t.bad(s.line, "%w", err)
			}
			continue
		case 's':
			if offsets == nil {
				ended()
				offsetsAt = s.at
			}
			at, err := t.offset(string(text), len(offsets))
			if err != nil {
				return t.bad(s.line, "%w", err)
			}
			offsets = append(offsets, at)
			continue
		}
		if offsets != nil {
			return t.bad(s.line, "found %s after the offset lines, which are the last", quoted(text))
		}
		task, err := taskOf(text)
		if err != nil {
			return t.bad(s.line, "%w", err)
		}
		if task != lastTask {
			ended()
			if task >= int64(len(t.tasks)) {
				return t.bad(s.line, "a record of task %d; the header says that there are %d tasks, from 0", task,
					len(t.tasks))
			}
			last = &t.tasks[task]
			if last.records > 0 {
				return t.bad(s.line, "a record of task %d, whose records began at line %d and ended before others "+
					"came; the records of a task stand together", task, last.line)
			}
			last.begin, last.line, lastTask = s.at, s.line, task
		}
		last.records++
	}
	if last != nil {
		last.end = s.next
	}
	t.checkOffsets(offsets, offsetsAt)
	return nil
}

// taskOf returns the task of a record.
func taskOf(line []byte) (int64, error) {
	i := bytes.IndexByte(line, ':')
	if i > 0 {
		if task, _, more, err := number(line[i+1:], field{"task", 0, maxInt32}); err == nil && more {
			return task, nil
		}
	}
	return 0, fmt.Errorf("found %s; want a record TYPE:TASK:THREAD:FIELDS, a definition d: or an offset line s:",
		quoted(line))
}

// definition reads d:1:id:n:task:... and skips the definitions of files and windows.
func (t *trace) definition(line string, at int64) error {
	fields := strings.Split(line, ":")
	if len(fields) >= 2 && fields[0] == "d" && (fields[1] == "2" || fields[1] == "3") {
		t.skipped++
		return nil
	}
	if len(fields) < 4 || fields[0] != "d" || fields[1] != "1" {
		return fmt.Errorf("definition %s; want d:1:communicator:n:task:..., or the types 2 (file) and 3 (window)",
			quoted([]byte(line)))
	}
	id, err := strconv.ParseInt(fields[2], 10, 32)
	if err != nil || id < minInt32 {
		return fmt.Errorf("definition: the communicator is %s; want a number", quoted([]byte(fields[2])))
	}
	g := group{id: id, line: at}
	if i, ok := t.groupOf[id]; ok {
		return fmt.Errorf("communicator %d is defined in line %d already", id, t.groups[i].line)
	}
	if n, err := strconv.ParseInt(fields[3], 10, 32); err != nil || n != int64(len(fields)-4) {
		return fmt.Errorf("communicator %d: %s tasks are said and %d are listed", id, quoted([]byte(fields[3])),
			len(fields)-4)
	}
	seen := map[int32]bool{}
	for _, f := range fields[4:] {
		task, err := strconv.ParseInt(strings.TrimSpace(f), 10, 32)
		if err != nil || task < 0 || task >= int64(len(t.tasks)) {
			return fmt.Errorf("communicator %d: the task %s; want one of the %d tasks, from 0", id, quoted([]byte(f)),
				len(t.tasks))
		}
		if seen[int32(task)] {
			return fmt.Errorf("communicator %d has task %d twice", id, task)
		}
		seen[int32(task)] = true
		g.tasks = append(g.tasks, int32(task))
	}
	t.groupOf[id] = len(t.groups)
	t.groups = append(t.groups, g)
	return nil
}

// offset reads s:task:position for its only thread.
func (t *trace) offset(line string, task int) (int64, error) {
	fields := strings.Split(line, ":")
	if len(fields) != 3 || fields[0] != "s" || fields[1] != strconv.Itoa(task) || task >= len(t.tasks) {
		return 0, fmt.Errorf("found %s; want s:%d:position, one line for each of the %d tasks in order",
			quoted([]byte(line)), task, len(t.tasks))
	}
	at, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || at < 0 {
		return 0, fmt.Errorf("the position is %s; want a number of bytes", quoted([]byte(fields[2])))
	}
	return at, nil
}

// checkOffsets compares the offset lines with the real positions of the records; commq uses the real ones.
func (t *trace) checkOffsets(offsets []int64, at int64) {
	if t.offsetsAt == 0 {
		return
	}
	if at != t.offsetsAt || len(offsets) != len(t.tasks) {
		t.note("The header says that the offset lines of %d tasks begin at byte %d, and %d begin at byte %d; "+
			"Dimemas goes by what it says.", len(t.tasks), t.offsetsAt, len(offsets), at)
		return
	}
	wrong := 0
	for task, x := range offsets {
		if s := t.tasks[task]; s.records > 0 && s.begin != x {
			wrong++
		}
	}
	if wrong > 0 {
		t.note("The offset lines of %d tasks are not where their records begin; Dimemas goes by them.", wrong)
	}
}
