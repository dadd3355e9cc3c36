package simrank

import (
	"io"
	"io/fs"
	"os"
	"syscall"
)

// pipe is a pipe that can be written without waiting for room in it.
type pipe struct {
	f   *os.File
	raw syscall.RawConn
	b   []byte // for write
	n   int
	do  func(fd uintptr) bool // p.write as a value, made once
}

// newPipe duplicates the file descriptor of a writer that is a pipe. It returns nil for other writers.
func newPipe(w io.Writer) *pipe {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	own := -1
	if err := raw.Control(func(fd uintptr) { own, _ = syscall.Dup(int(fd)) }); err != nil || own < 0 {
		return nil
	}
	syscall.CloseOnExec(own)
	if err := syscall.SetNonblock(own, true); err != nil {
		_ = syscall.Close(own)
		return nil
	}
	// os.NewFile notices that the descriptor does not block, and then waits by polling
	p := &pipe{f: os.NewFile(uintptr(own), f.Name())}
	if p.raw, err = p.f.SyscallConn(); err != nil {
		_ = p.f.Close()
		return nil
	}
	p.do = p.write
	return p
}

// try writes what there is room for and returns how much that was. The next write reports errors.
func (p *pipe) try(b []byte) int {
	p.b, p.n = b, 0
	if err := p.raw.Write(p.do); err != nil {
		return 0
	}
	return max(p.n, 0)
}

func (p *pipe) write(fd uintptr) bool {
	p.n, _ = syscall.Write(int(fd), p.b)
	return true
}
