// Package symbols finds the function, file and line of a call. Sites holds the modules and call sites that a process
// defined in its spool (sites.go, read.go). Resolver looks up addresses in the files of the modules (resolver.go,
// file.go), with DWARF (dwarf.go) or the symbol table. docs/method/call-sites.md describes how call sites are
// captured and numbered.
package symbols

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/commq/commq/capture/spool"
)

// Module is an executable or shared library as it was loaded by a process.
type Module struct {
	// Low and High bound its addresses in the process. High is the first address after the module.
	Low, High uint64
	// Bias is an address in the process minus the same address in the file of the module.
	Bias uint64
	// BuildID is the hexadecimal build id; empty when it has none.
	BuildID string
	// Path is the file it was loaded from, on the machine where the process ran.
	Path string
	// Skip is true for the shim and the MPI library.
	Skip bool
}

// Name returns the module's file name.
func (m *Module) Name() string { return filepath.Base(m.Path) }

// Address is a return address of a call path.
type Address struct {
	// Module is the module with the address; nil when there is none, as for code generated at run time.
	Module *Module
	// Offset is the address in the file of the module (as in its program headers), which is the same in every process.
	// Without a module it is the address in the process.
	Offset uint64
}

// Sites are the call sites that a process defined, in the files of all its threads. The zero value is empty.
type Sites struct {
	modules map[int64]*Module
	numbers []int64 // of modules, ascending
	paths   map[uint32][]uint64
}

// Define adds the payload of a definition DefModule or DefSite with its number; other kinds are ignored. Definitions
// may come in any order. A damaged payload is an error.
func (s *Sites) Define(what uint16, number int64, payload []byte) error {
	switch what {
	case spool.DefModule:
		return s.defineModule(number, payload)
	case spool.DefSite:
		return s.defineSite(number, payload)
	}
	return nil
}

func (s *Sites) defineModule(number int64, payload []byte) error {
	var fixed spool.ModuleDef
	n := binary.Size(fixed)
	if _, err := binary.Decode(payload, binary.LittleEndian, &fixed); err != nil {
		return fmt.Errorf("module %d: %d bytes of payload, want %d or more", number, len(payload), n)
	}
	rest := payload[n:]
	if fixed.IDBytes < 0 || int(fixed.IDBytes) > len(rest) {
		return fmt.Errorf("module %d: a build id of %d bytes in %d", number, fixed.IDBytes, len(rest))
	}
	if fixed.High <= fixed.Low {
		return fmt.Errorf("module %d: addresses %#x to %#x", number, fixed.Low, fixed.High)
	}
	if s.modules == nil {
		s.modules = map[int64]*Module{}
	}
	if s.modules[number] == nil {
		i, _ := slices.BinarySearch(s.numbers, number)
		s.numbers = slices.Insert(s.numbers, i, number)
	}
	s.modules[number] = &Module{Low: fixed.Low, High: fixed.High, Bias: fixed.Bias, Skip: fixed.Skip != 0,
		BuildID: hex.EncodeToString(rest[:fixed.IDBytes]), Path: string(rest[fixed.IDBytes:])}
	return nil
}

// MaxFrames is larger than any number of frames that the shim records.
const MaxFrames = 1024

func (s *Sites) defineSite(number int64, payload []byte) error {
	if len(payload) == 0 || len(payload)%8 != 0 || len(payload) > 8*MaxFrames || number <= 0 || number > 1<<32-1 {
		return fmt.Errorf("call site %d: %d bytes of return addresses", number, len(payload))
	}
	path := make([]uint64, len(payload)/8)
	for i := range path {
		path[i] = binary.LittleEndian.Uint64(payload[8*i:])
	}
	if s.paths == nil {
		s.paths = map[uint32][]uint64{}
	}
	s.paths[uint32(number)] = path
	return nil
}

// Numbers returns the numbers of the call sites, ascending.
func (s *Sites) Numbers() []uint32 {
	numbers := make([]uint32, 0, len(s.paths))
	for n := range s.paths {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}

// Path returns the call path of a site, by the number in a CALL slot, innermost frame first; nil when it is not
// defined.
func (s *Sites) Path(site uint32) []Address {
	path := s.paths[site]
	if path == nil {
		return nil
	}
	frames := make([]Address, len(path))
	for i, a := range path {
		frames[i] = s.locate(a, int64(site))
	}
	return frames
}

// locate finds the module of a return address: the last one defined before the site. It looks up the call instruction
// instead, because a call at the very end of a module returns to an address after it.
func (s *Sites) locate(address uint64, site int64) Address {
	last, _ := slices.BinarySearch(s.numbers, site)
	for _, n := range slices.Backward(s.numbers[:last]) {
		if m := s.modules[n]; address-1 >= m.Low && address-1 < m.High {
			return Address{m, address - m.Bias}
		}
	}
	return Address{nil, address}
}
