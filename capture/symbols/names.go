package symbols

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// symbolName returns the source name of a linker symbol: C++ is demangled, without parameters; a procedure of a
// Fortran module becomes module::name. Suffixes for the compiler's copies of a function (.part.0, .isra.1) are
// removed. Other names stay as they are: the symbol update_ may or may not be the Fortran subroutine update.
func symbolName(name string) string {
	name, _, _ = strings.Cut(name, "@") // the version of the symbol
	if i := strings.IndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	if plain, ok := linkageName(name); ok {
		return plain
	}
	return name
}

// maxNameLog2 limits a demangled name to 2^12 bytes, because template names can have any length.
const maxNameLog2 = 12

// linkageName demangles a name from C++, Rust or a Fortran module. It returns false for a name that is not mangled.
func linkageName(name string) (string, bool) {
	if strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") {
		s, err := demangle.ToString(name, demangle.NoParams, demangle.NoClones, demangle.MaxLength(maxNameLog2))
		return s, err == nil
	}
	if rest, ok := strings.CutPrefix(name, "__"); ok {
		if module, procedure, ok := strings.Cut(rest, "_MOD_"); ok && module != "" && procedure != "" {
			return module + "::" + procedure, true
		}
	}
	return "", false
}
