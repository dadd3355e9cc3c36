package symbols

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// symbolName is a linker symbol as the source has it: C++ demangled without parameters, a Fortran module's procedure as
// module::name, without the suffixes of copies that the compiler made of a function (.part.0, .isra.1). Other names are as
// they are: whether update_ is a Fortran subroutine update, a symbol does not say.
func symbolName(name string) string {
	name, _, _ = strings.Cut(name, "@") // a symbol's version
	if i := strings.IndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	if plain, ok := linkageName(name); ok {
		return plain
	}
	return name
}

// maxNameLog2 bounds a demangled name to 2^12 bytes: a template's can be of any length.
const maxNameLog2 = 12

// linkageName is what a mangled name of C++ or of a Fortran module stands for; false for one that is not mangled.
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
