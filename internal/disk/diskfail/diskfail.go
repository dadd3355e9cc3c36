// Package diskfail is a disk that fails, for tests: a disk.Layer over a folder of the machine that lets one operation
// fail, or all from one on, and that knows at every moment what would be left if the power failed.
//
// In reading order: diskfail.go decides what fails, tree.go follows what is durable, crash.go makes the folder that a
// power failure leaves.
package diskfail

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/commq/commq/internal/disk"
)

// ErrDead is the error of every operation after the power has failed.
var ErrDead = errors.New("the power has failed")

// Fault describes which operation fails, and how. The zero value injects no fault.
type Fault struct {
	// At is the number of the operation that fails, from 1; 0 is none.
	At int
	// Err is its error. nil means that the power fails before the operation.
	Err error
	// From makes all later operations of the same kind fail too, as on a disk that stays full.
	From bool
	// Part makes a failing write write this many of 16 parts of its data before it fails.
	Part int
}

// String describes the fault for messages.
func (f Fault) String() string {
	switch {
	case f.At == 0:
		return "no fault"
	case f.Err == nil:
		return fmt.Sprintf("power failure at operation %d", f.At)
	case f.From:
		return fmt.Sprintf("%v from operation %d on, after %d/16", f.Err, f.At, f.Part)
	}
	return fmt.Sprintf("%v at operation %d, after %d/16", f.Err, f.At, f.Part)
}

// Errors are what file systems answer. Rename and exchange are refused with EXDEV and EINVAL where a folder is a mount
// of its own, and exchange is unknown to some.
var Errors = []error{syscall.ENOSPC, syscall.EIO, syscall.EINTR, syscall.EMFILE, syscall.EDQUOT, syscall.EACCES,
	syscall.EROFS, syscall.EXDEV}

// Disk is a folder on a disk that fails.
type Disk struct {
	root string

	mu     sync.Mutex
	faults []Fault
	kinds  []disk.Kind // by fault: of the operation that it met
	count  int
	dead   bool
	said   string // the first operation that failed
	tree   *tree
}

// New makes a disk of a folder, whose present contents are durable.
func New(root string, faults ...Fault) (*Disk, error) {
	t, err := newTree(root)
	if err != nil {
		return nil, err
	}
	return &Disk{root: root, faults: faults, kinds: make([]disk.Kind, len(faults)), tree: t}, nil
}

// Run calls do with the disk under its folder.
func (d *Disk) Run(do func() error) error {
	defer disk.Over(d.root, d)()
	return do()
}

// Count returns the number of operations so far.
func (d *Disk) Count() int { return d.count }

// Failed describes the operation that failed; it is empty when none did.
func (d *Disk) Failed() string { return d.said }

// Dead reports whether the power has failed.
func (d *Disk) Dead() bool { return d.dead }

// Do implements disk.Layer.
func (d *Disk) Do(op *disk.Op, do func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return d.leave(op, do)
	}
	d.count++
	f := d.next(op)
	if f == nil {
		return d.pass(op, do)
	}
	if d.said == "" {
		d.said = fmt.Sprintf("%s %s/%s", op.Kind, filepath.Base(filepath.Dir(op.Path)), filepath.Base(op.Path))
	}
	if f.Err == nil {
		d.dead = true
		return d.leave(op, do)
	}
	return d.fail(f, op, do)
}

// next returns the fault that meets an operation.
func (d *Disk) next(op *disk.Op) *Fault {
	for i := range d.faults {
		f := &d.faults[i]
		if f.At == d.count {
			d.kinds[i] = op.Kind
			return f
		}
		if f.From && f.At < d.count && d.kinds[i] == op.Kind {
			return f
		}
	}
	return nil
}

// leave ends an operation after a power failure. Files are closed, for the sake of this process.
func (d *Disk) leave(op *disk.Op, do func() error) error {
	if op.Kind == disk.OpClose {
		_ = do()
	}
	return ErrDead
}

// fail lets an operation fail; of a write a part may be done.
func (d *Disk) fail(f *Fault, op *disk.Op, do func() error) error {
	if op.Kind == disk.OpClose {
		_ = do() // a file is closed in any case
	}
	if n := len(op.Data) * f.Part / 16; op.Kind == disk.OpWrite && n > 0 {
		op.Data = op.Data[:n]
		if err := d.pass(op, do); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s %s: %w", op.Kind, op.Path, f.Err)
}

// pass does an operation and follows what it means for a power failure.
func (d *Disk) pass(op *disk.Op, do func() error) error {
	if err := do(); err != nil {
		return err
	}
	return d.tree.apply(op)
}

// Crash makes the folder to that a power failure at this moment leaves. choose returns a random number below n; calls
// with the same numbers make the same folder.
func (d *Disk) Crash(to string, choose func(n int) int) error { return d.tree.crash(to, choose) }
