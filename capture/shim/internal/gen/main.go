// Command gen writes the shim's generated C sources from schema/calls.csv: src/fns_gen.h, the MPI library's functions
// that the shim calls, and src/wrap_gen.c, a thin wrapper for each call with a recorder in each of its spellings. Run
// it by go generate ./capture/shim.
package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// call is a line of calls.csv.
type call struct {
	name       string // without MPI_
	extension  bool   // the name begins with MPIX_ instead
	recorder   string
	params     []param
	openmpi    bool // Open MPI 4 has it
	openmpiF08 bool // Open MPI 4 has it in mpi_f08
	mpichF08   bool // MPICH has a non-buffer mpi_x_f08_ that does not arrive through the C symbol
	number     int
	facts      []string // words of schema.FactNames
}

// param is a parameter of the C prototype.
type param struct {
	ctype string // const int, MPI_Comm *, with [] for arrays
	name  string
	array bool
}

func main() {
	log.SetFlags(0)
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	all, err := readCalls(filepath.Join(dir, "..", "..", "schema", "calls.csv"))
	if err != nil {
		log.Fatal(err)
	}
	calls, translated := recorded(all), unseen(all)
	wrappers, err := wrapSource(calls)
	if err != nil {
		log.Fatal(err)
	}
	write(filepath.Join(dir, "src", "facts_gen.h"), factsHeader(calls))
	write(filepath.Join(dir, "src", "fns_gen.h"), functionsHeader(calls, translated))
	write(filepath.Join(dir, "src", "wrap_gen.c"), wrappers)
	write(filepath.Join(dir, "src", "world_gen.c"), worldSource(translated))
}

// recorded filters the calls that have a recorder.
func recorded(all []call) []call {
	var rs []call
	for _, c := range all {
		if c.recorder != "" && !c.pending() {
			rs = append(rs, c)
		}
	}
	return rs
}

func readCalls(path string) ([]call, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	col := map[string]int{}
	for i, name := range lines[0] {
		col[name] = i
	}
	var calls []call
	for i, l := range lines[1:] {
		number := i + 1
		prefix, name, _ := strings.Cut(l[col["name"]], "_")
		if l[col["treatment"]] == "never" || prefix != "MPI" && (prefix != "MPIX" || l[col["recorder"]] == "") {
			continue
		}
		c := call{
			name:       name,
			number:     number,
			facts:      strings.Fields(l[col["facts"]]),
			extension:  prefix == "MPIX",
			recorder:   l[col["recorder"]],
			params:     parseParams(l[col["arguments"]]),
			openmpi:    l[col["openmpi"]] == "1",
			openmpiF08: l[col["openmpi_f08"]] == "1",
			mpichF08:   l[col["mpich_f08"]] == "pmpir_f08",
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// pending reports whether the shim has no recorder for the call yet.
func (c call) pending() bool {
	return c.large() && !largeCounts[c.recorder]
}

// is reports whether the call has a fact of calls.csv.
func (c call) is(fact string) bool { return slices.Contains(c.facts, fact) }

// has reports whether the call has a parameter of that name.
func (c call) has(name string) bool {
	for _, p := range c.params {
		if p.name == name {
			return true
		}
	}
	return false
}

func parseParams(s string) []param {
	var ps []param
	for _, decl := range strings.Split(s, ";") {
		decl = strings.TrimSpace(decl)
		if decl == "" {
			continue
		}
		var p param
		if p.array = strings.HasSuffix(decl, "[]"); p.array {
			decl = strings.TrimSuffix(decl, "[]")
		}
		i := strings.LastIndexAny(decl, " *")
		p.ctype, p.name = strings.TrimSpace(decl[:i+1]), decl[i+1:]
		ps = append(ps, p)
	}
	return ps
}

// helpers are functions that the recorders themselves call, in addition to the wrapped ones.
var helpers = strings.Fields(`Cart_get Cart_shift Cartdim_get Comm_group Comm_rank Comm_remote_group Comm_remote_size Comm_size Comm_test_inter
	Dist_graph_neighbors Dist_graph_neighbors_count Error_class Get_elements_x Get_library_version Graph_neighbors
	Graph_neighbors_count Grequest_complete Grequest_start Group_free Group_translate_ranks Query_thread Status_set_cancelled Status_set_elements_x
	Test_cancelled Topo_test Type_get_envelope Type_get_extent Type_get_name Type_size_x Wtick Wtime
	Comm_set_errhandler Pack Type_commit Type_contiguous Type_create_hindexed Type_get_contents Type_get_true_extent`)

// largeHelpers are helpers that only libraries with large counts have.
var largeHelpers = []string{"Type_get_envelope_c"}

// conversions are functions in Open MPI and macros in MPICH.
var conversions = strings.Fields("Comm_f2c Group_f2c Message_f2c Op_f2c Request_f2c Type_f2c Win_f2c")

// openmpiData are the objects whose addresses are Open MPI's handles and Fortran sentinels.
var openmpiData = strings.Fields(`ompi_mpi_comm_world ompi_mpi_comm_self ompi_mpi_comm_null ompi_mpi_group_null ompi_mpi_datatype_null
	ompi_mpi_byte ompi_request_null ompi_message_no_proc ompi_message_null ompi_mpi_op_max ompi_mpi_op_min ompi_mpi_op_sum ompi_mpi_op_prod
	ompi_mpi_op_land ompi_mpi_op_band ompi_mpi_op_lor ompi_mpi_op_bor ompi_mpi_op_lxor ompi_mpi_op_bxor ompi_mpi_op_maxloc
	ompi_mpi_op_minloc ompi_mpi_op_replace ompi_mpi_op_no_op
	ompi_mpi_errors_return ompi_mpi_signed_char ompi_mpi_unsigned_char ompi_mpi_short ompi_mpi_unsigned_short ompi_mpi_int ompi_mpi_unsigned
	ompi_mpi_long ompi_mpi_unsigned_long ompi_mpi_long_long_int ompi_mpi_unsigned_long_long ompi_mpi_int8_t ompi_mpi_uint8_t ompi_mpi_int16_t
	ompi_mpi_uint16_t ompi_mpi_int32_t ompi_mpi_uint32_t ompi_mpi_int64_t ompi_mpi_uint64_t ompi_mpi_aint ompi_mpi_offset ompi_mpi_count
	ompi_mpi_integer ompi_mpi_integer1 ompi_mpi_integer2 ompi_mpi_integer4 ompi_mpi_integer8`)

var (
	openmpiSentinels = strings.Fields("mpi_fortran_bottom_ mpi_fortran_in_place_ mpi_fortran_status_ignore_ mpi_fortran_statuses_ignore_")
	mpichSentinels   = strings.Fields("MPIR_F08_MPI_BOTTOM MPIR_F08_MPI_IN_PLACE MPIR_F08_MPI_STATUS_IGNORE_OBJ MPIR_F08_MPI_STATUSES_IGNORE_OBJ")
)

const banner = "/* Code generated by capture/shim/internal/gen from schema/calls.csv; DO NOT EDIT. */\n"

// factsHeader writes the facts of the recorded calls as bit sets, by call number.
func factsHeader(calls []call) []byte {
	var words []string
	last := 0
	for _, c := range calls {
		words = append(words, c.facts...)
		last = max(last, c.number)
	}
	slices.Sort(words)
	words = slices.Compact(words)
	constant := func(word string) string { return "CQ_FACT_" + strings.ToUpper(strings.ReplaceAll(word, "-", "_")) }
	var b bytes.Buffer
	b.WriteString(banner + "#ifndef COMMQ_FACTS_GEN_H\n#define COMMQ_FACTS_GEN_H\n\n#include <stdint.h>\n\n")
	b.WriteString("/* What calls do: the column facts of calls.csv, whose words schema/facts.go explains. */\n")
	for i, w := range words {
		fmt.Fprintf(&b, "#define %s ((uint64_t)1 << %d)\n", constant(w), i)
	}
	fmt.Fprintf(&b, "\n/* By call id; 0 for a call that is not recorded. */\nstatic const uint64_t cq_call_facts[%d] = {\n", last+1)
	for _, c := range calls {
		if len(c.facts) == 0 {
			continue
		}
		set := make([]string, len(c.facts))
		for i, f := range c.facts {
			set[i] = constant(f)
		}
		fmt.Fprintf(&b, "\t[%d] = %s, /* %s */\n", c.number, strings.Join(set, " | "), c.prefixed("MPI_"+c.name))
	}
	fmt.Fprintf(&b, "};\n\nstatic inline uint64_t cq_facts_of(int call)\n{\n\treturn call <= %d ? cq_call_facts[call] : 0;\n}\n\n#endif\n", last)
	return b.Bytes()
}

func functionsHeader(calls, translated []call) []byte {
	var b bytes.Buffer
	b.WriteString(banner + "#ifndef COMMQ_FNS_GEN_H\n#define COMMQ_FNS_GEN_H\n\n")
	b.WriteString("/* The MPI library's own functions, found when the first call is made: the shim refers to none by name, so that it\n * can be loaded into any process. */\n")
	common := slices.Concat(helpers, processHelpers)
	guarded := map[string][]string{"CQ_LARGE": slices.Clone(largeHelpers), "CQ_MPI4": slices.Clone(processHelpersMPI4)}
	for _, c := range calls {
		if c.guard() == "" {
			common = append(common, c.name)
		} else {
			guarded[c.guard()] = append(guarded[c.guard()], c.name)
		}
	}
	sort.Strings(common)
	macroList(&b, "CQ_FNS_ALL(X)", common, "X(%s)")
	b.WriteString("#if CQ_OPENMPI\n")
	macroList(&b, "CQ_FNS_F2C(X)", append([]string{"File_f2c"}, conversions...), "X(%s)")
	b.WriteString("#elif CQ_MPICH\n#define CQ_FNS_F2C(X) X(File_f2c)\n#else\n#define CQ_FNS_F2C(X)\n#endif\n")
	for _, l := range []struct{ guard, list string }{{"CQ_MPI4", "CQ_FNS_MPI4(X)"}, {"CQ_LARGE", "CQ_FNS_LARGE(X)"},
		{"CQ_PCOLL", "CQ_FNS_MPIX(X)"}} {
		b.WriteString("#if " + l.guard + "\n")
		macroList(&b, l.list, guarded[l.guard], "X(%s)")
		b.WriteString("#else\n#define " + l.list + "\n#endif\n")
	}
	simFunctions(&b, translated, common)
	b.WriteString("#define CQ_FNS(X) CQ_FNS_ALL(X) CQ_FNS_F2C(X) CQ_FNS_MPI4(X) CQ_FNS_LARGE(X) CQ_FNS_SIM(X) CQ_FNS_SIM_LARGE(X) CQ_FNS_SIM_MPI4(X)\n\n")
	b.WriteString("typedef struct {\n#define X(f) __typeof__(&PMPI_##f) f;\n\tCQ_FNS(X)\n#undef X\n")
	b.WriteString("#define X(f) __typeof__(&PMPIX_##f) MPIX_##f;\n\tCQ_FNS_MPIX(X) CQ_FNS_SIM_MPIX(X)\n#undef X\n} cq_fns;\n\n")
	fortranTable(&b, calls, translated)
	dataTable(&b)
	b.WriteString("extern cq_fns cq_p __attribute__((visibility(\"hidden\")));\n/* The same functions for calls of the program: those of another tool where one wraps MPI too. */\nextern cq_fns cq_next __attribute__((visibility(\"hidden\")));\nextern cq_ffns cq_f __attribute__((visibility(\"hidden\")));\nextern cq_data cq_d __attribute__((visibility(\"hidden\")));\n\n#endif\n")
	return b.Bytes()
}

func macroList(b *bytes.Buffer, name string, items []string, format string) {
	fmt.Fprintf(b, "#define %s", name)
	for i, it := range items {
		if i%6 == 0 {
			b.WriteString(" \\\n\t")
		} else {
			b.WriteString(" ")
		}
		fmt.Fprintf(b, format, it)
	}
	b.WriteString("\n")
}

// fortranTable lists Fortran entry points with their number of arguments. All arguments are addresses, including ierr
// and the hidden length of a string.
func fortranTable(b *bytes.Buffer, calls, translated []call) {
	var openmpi, openmpi5, extensions, mpich []string
	for _, c := range calls {
		if c.large() {
			continue
		}
		n := len(c.fortranParams()) + 1
		low := strings.ToLower(c.name)
		list := &openmpi
		switch c.guard() {
		case "CQ_MPI4":
			list = &openmpi5
		case "CQ_PCOLL":
			list = &extensions
		}
		*list = append(*list, fmt.Sprintf(c.prefixed("pmpi_%s_, %d"), low, n),
			fmt.Sprintf(c.prefixed("pmpi_%s_f08_, %d"), low, n))
		if pointerForms[c.name] {
			openmpi = append(openmpi, fmt.Sprintf("pmpi_%s_cptr_, %d", low, n))
		}
		if c.mpichF08 {
			mpich = append(mpich, fmt.Sprintf("pmpir_%s_f08_, %d", low, n))
		}
		if pointerForms[c.name] {
			mpich = append(mpich, fmt.Sprintf("pmpir_%s_f08_large_, %d", low, n))
		}
		if c.recorder == "pcontrol" {
			mpich = append(mpich, fmt.Sprintf("pmpi_%s_, %d", low, n))
		}
	}
	b.WriteString("/* Fortran entry points and how many arguments they have. All are addresses. */\n")
	simFortran(b, translated)
	b.WriteString("#if CQ_OPENMPI\n#if CQ_MPI4\n")
	macroList(b, "CQ_FFNS_MPI4(X)", openmpi5, "X(%s)")
	b.WriteString("#else\n#define CQ_FFNS_MPI4(X)\n#endif\n#if CQ_PCOLL\n")
	macroList(b, "CQ_FFNS_MPIX(X)", extensions, "X(%s)")
	b.WriteString("#else\n#define CQ_FFNS_MPIX(X)\n#endif\n")
	macroList(b, "CQ_FFNS_ALL(X)", openmpi, "X(%s)")
	b.WriteString("#define CQ_FFNS(X) CQ_FFNS_ALL(X) CQ_FFNS_MPI4(X) CQ_FFNS_MPIX(X) CQ_FFNS_SIM(X)\n#elif CQ_MPICH\n")
	macroList(b, "CQ_FFNS_ALL(X)", mpich, "X(%s)")
	b.WriteString("#define CQ_FFNS(X) CQ_FFNS_ALL(X) CQ_FFNS_SIM(X)\n")
	b.WriteString("#else /* the ABI of MPI 5 has no functions of Fortran */\n#define CQ_FFNS(X)\n#endif\n")
	for n := 1; n <= 14; n++ {
		fmt.Fprintf(b, "typedef void (*cq_f%d)(%s);\n", n, strings.TrimSuffix(strings.Repeat("void *, ", n), ", "))
	}
	b.WriteString("/* The same with the hidden length of a string behind them. */\n")
	for n := 2; n <= 9; n++ {
		fmt.Fprintf(b, "typedef void (*cq_fs%d)(%ssize_t);\n", n, strings.Repeat("void *, ", n-1))
	}
	b.WriteString("\ntypedef struct {\n#define X(f, n) cq_f##n f;\n\tCQ_FFNS(X)\n#undef X\n\tchar none; /* not empty */\n} cq_ffns;\n\n")
}

func dataTable(b *bytes.Buffer) {
	b.WriteString("#if CQ_OPENMPI\n")
	macroList(b, "CQ_DATA(X)", append(append([]string(nil), openmpiData...), openmpiSentinels...), "X(%s)")
	b.WriteString("#elif CQ_MPICH\n")
	macroList(b, "CQ_DATA(X)", mpichSentinels, "X(%s)")
	b.WriteString("#else\n#define CQ_DATA(X)\n")
	b.WriteString("#endif\ntypedef struct {\n#define X(f) void *p_##f;\n\tCQ_DATA(X)\n#undef X\n\tchar none; /* not empty */\n} cq_data;\n\n")
	b.WriteString("#if CQ_OPENMPI\n/* mpi.h makes handles of the addresses of these. */\n")
	for _, d := range openmpiData {
		fmt.Fprintf(b, "#define %s (*(char *)cq_d.p_%s)\n", d, d)
	}
	b.WriteString("#endif\n\n")
}

func write(path string, data []byte) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		log.Fatal(err)
	}
}
