package dimemas

import (
	"fmt"
	"sort"

	"github.com/commq/commq/schema"
)

// comm is a communicator of the run.
type comm struct {
	members []int32
	rankOf  map[int32]int32 // nil for the world, where every task has its own rank
	// next is the instance of the first operation that some ranks have not reached; open has those from it on.
	next int64
	open []instance
	// calls counts the operations by call.
	calls map[schema.CallID]int64
	// roots has the root from an instance on, until the next entry.
	roots []rootFrom
}

// instance is a collective operation that some ranks have not reached.
type instance struct {
	call      schema.CallID
	root      int32 // NullInt32 until a rank names it
	rootLine  int64
	first     int32
	firstLine int64
	arrived   int
}

type rootFrom struct {
	instance int64
	root     int32
}

// comms maps the file's communicators to those of the run. 0 is the world: the definition with all tasks in order, if
// there is one.
type comms struct {
	list []*comm
	// defined maps the numbers of definitions in the file to ids, those of definitions without tasks to nobody. keys does
	// the same for messages between tasks that are not members of the communicator they name, which Dimemas allows.
	defined, keys map[int32]int32
	ranks         int
}

// nobody stands for communicators without members, which a run does not have.
const nobody = -1

func newComms(t *trace) *comms {
	c := &comms{defined: map[int32]int32{}, keys: map[int32]int32{}, ranks: len(t.tasks)}
	c.list = []*comm{{members: identity(c.ranks)}}
	world := false
	for _, g := range t.groups {
		if !world && isIdentity(g.tasks, c.ranks) {
			c.defined[int32(g.id)] = 0
			world = true
			continue
		}
		if len(g.tasks) == 0 {
			c.defined[int32(g.id)] = nobody
			continue
		}
		x := &comm{members: g.tasks, rankOf: make(map[int32]int32, len(g.tasks))}
		for i, task := range g.tasks {
			x.rankOf[task] = int32(i)
		}
		c.defined[int32(g.id)] = int32(len(c.list))
		c.list = append(c.list, x)
	}
	return c
}

func identity(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

func isIdentity(tasks []int32, n int) bool {
	for i, task := range tasks {
		if task != int32(i) {
			return false
		}
	}
	return len(tasks) == n
}

// rank returns the rank of a task in the communicator, and false if it is not a member.
func (c *comm) rank(task int32) (int32, bool) {
	if c.rankOf == nil {
		return task, true
	}
	r, ok := c.rankOf[task]
	return r, ok
}

// forMessage returns the communicator of a message between two tasks, from its number in the file.
func (c *comms) forMessage(number, a, b int32) int32 {
	if id, ok := c.defined[number]; ok && id != nobody {
		_, aIn := c.list[id].rank(a)
		_, bIn := c.list[id].rank(b)
		if aIn && bIn {
			return id
		}
	}
	id, ok := c.keys[number]
	if !ok {
		id = int32(len(c.list))
		c.keys[number] = id
		c.list = append(c.list, &comm{members: c.list[0].members})
	}
	return id
}

// forCollective returns the communicator of a task's collective.
func (c *comms) forCollective(number, task int32) (int32, error) {
	id, ok := c.defined[number]
	if !ok {
		return 0, fmt.Errorf("communicator %d is not defined; want a line d:1:%d:n:task:... before the records",
			number, number)
	}
	member := false
	if id != nobody {
		_, member = c.list[id].rank(task)
	}
	if !member {
		return 0, fmt.Errorf("task %d is no member of communicator %d", task, number)
	}
	return id, nil
}

// arrive records that a task reaches the n-th operation of the communicator.
func (c *comm) arrive(n int64, call schema.CallID, task, root int32, line int64) error {
	for int64(len(c.open)) <= n-c.next {
		c.open = append(c.open, instance{root: schema.NullInt32})
	}
	i := &c.open[n-c.next]
	if i.arrived == 0 {
		i.call, i.first, i.firstLine = call, task, line
	}
	if i.call != call {
		return fmt.Errorf("operation %d of the communicator is %s here, and %s of task %d in line %d; all ranks "+
			"make the same", n, call, i.call, i.first, i.firstLine)
	}
	if root != schema.NullInt32 {
		if i.root != schema.NullInt32 && i.root != root {
			return fmt.Errorf("operation %d of the communicator has the root %d here, and %d by line %d", n, root,
				i.root, i.rootLine)
		}
		i.root, i.rootLine = root, line
	}
	i.arrived++
	for len(c.open) > 0 && c.open[0].arrived == len(c.members) {
		c.close()
	}
	return nil
}

// close counts the first open operation and drops it, keeping its root.
func (c *comm) close() {
	root := c.open[0].root
	if c.calls == nil {
		c.calls = map[schema.CallID]int64{}
	}
	c.calls[c.open[0].call]++
	if n := len(c.roots); n == 0 && root != schema.NullInt32 || n > 0 && c.roots[n-1].root != root {
		c.roots = append(c.roots, rootFrom{c.next, root})
	}
	c.open = c.open[1:]
	c.next++
}

// root returns the root of an operation, NullInt32 if it has none.
func (c *comm) root(n int64) int32 {
	i := sort.Search(len(c.roots), func(i int) bool { return c.roots[i].instance > n })
	if i == 0 {
		return schema.NullInt32
	}
	return c.roots[i-1].root
}

// write writes the table comms.
func (c *comms) write(out sink) error {
	b := &schema.Comms{}
	for id, x := range c.list {
		row := schema.NullComm
		row.Comm, row.Kind = int32(id), int16(schema.CommOther)
		if id == 0 {
			row.Kind, row.Name = int16(schema.CommWorld), "MPI_COMM_WORLD"
		}
		for rank, task := range x.members {
			row.CommRank, row.WorldRank = int32(rank), task
			b.Append(&row)
		}
	}
	return out.Write(0, b)
}
