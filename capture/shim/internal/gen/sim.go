package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// intoApp returns the lines of a wrapper that replace MPI_COMM_WORLD by the communicator of the program's ranks. They
// do nothing outside the build for simulator ranks.
func (f flavour) intoApp(c call) string {
	var b strings.Builder
	if c.name == "Abort" { // ends the simulator ranks too
		return ""
	}
	for _, p := range c.params {
		if p.ctype != "MPI_Comm" {
			continue
		}
		macro := "CQ_IN_APP"
		if f.fortran {
			macro = "CQ_IN_APP_F"
		}
		fmt.Fprintf(&b, "\t%s(%s);\n", macro, p.name)
	}
	return b.String()
}

// unseen filters the calls that take a communicator and are not recorded.
func unseen(calls []call) []call {
	var us []call
	for _, c := range calls {
		if c.recorder == "" && takesComm(c) && c.name != "Comm_c2f" {
			us = append(us, c)
		}
	}
	return us
}

func takesComm(c call) bool {
	for _, p := range c.params {
		if p.ctype == "MPI_Comm" {
			return true
		}
	}
	return false
}

// byWorld are the calls with hand-written wrappers in world_calls.c.
var byWorld = strings.Fields("Comm_get_attr Attr_get Comm_set_errhandler Errhandler_set")

// worldC are other C functions that world_calls.c calls, worldC4 those of MPI 4, and worldMPICH MPICH's own.
var (
	worldC     = strings.Fields("Comm_create_errhandler Comm_create_keyval Errhandler_create Finalized Initialized Keyval_create")
	worldC4    = strings.Fields("Group_incl Info_set Session_get_pset_info")
	worldMPICH = strings.Fields("Comm_agree Comm_failure_ack Comm_failure_get_acked Comm_revoke Comm_shrink")
)

// worldOpenMPIF and worldMPICHF are the Fortran entry points that world_calls.c calls, with their number of arguments.
var (
	worldOpenMPIF = []string{"pmpi_comm_create_errhandler_, 3", "pmpi_comm_create_errhandler_f08_, 3",
		"pmpi_comm_create_keyval_, 5",
		"pmpi_comm_create_keyval_f08_, 5", "pmpi_errhandler_create_, 3", "pmpi_keyval_create_, 5"}
	worldMPICHF = []string{"pmpir_comm_create_errhandler_f08_, 3", "pmpir_comm_create_keyval_f08_, 5",
		"pmpi_comm_create_keyval_, 5", "pmpi_keyval_create_, 5",
		"pmpi_comm_get_attr_, 5", "pmpi_comm_set_attr_, 4", "pmpi_attr_get_, 5", "pmpi_attr_put_, 4",
		"pmpir_alltoallw_f08ts_, 10", "pmpir_alltoallw_f08ts_large_, 10", "pmpir_ialltoallw_f08ts_, 11",
		"pmpir_ialltoallw_f08ts_large_, 11",
		"pmpir_alltoallw_init_f08ts_, 12", "pmpir_alltoallw_init_f08ts_large_, 12", "pmpir_pack_size_f08_large_, 5",
		"pmpir_finalized_f08_, 2", "pmpir_initialized_f08_, 2", "pmpir_group_from_session_pset_f08_, 4",
		"pmpir_session_get_pset_info_f08_, 4",
		"pmpixr_comm_agree_f08_, 3", "pmpixr_comm_failure_ack_f08_, 2", "pmpixr_comm_failure_get_acked_f08_, 3",
		"pmpixr_comm_revoke_f08_, 2",
		"pmpixr_comm_shrink_f08_, 3"}
)

// simFunctions lists the C functions that only the build for simulator ranks needs.
func simFunctions(b *bytes.Buffer, translated []call, known []string) {
	var plain, large []string
	for _, c := range translated {
		switch {
		case slices.Contains(known, c.name):
		case c.guard() == "":
			plain = append(plain, c.name)
		default:
			large = append(large, c.name)
		}
	}
	plain = append(plain, worldC...)
	b.WriteString("#if CQ_SIM && CQ_OPENMPI\n")
	macroList(b, "CQ_FNS_SIM(X)", append([]string{"Comm_c2f"}, plain...), "X(%s)")
	b.WriteString("#elif CQ_SIM\n")
	macroList(b, "CQ_FNS_SIM(X)", plain, "X(%s)")
	b.WriteString("#else\n#define CQ_FNS_SIM(X)\n#endif\n#if CQ_SIM && CQ_LARGE\n")
	macroList(b, "CQ_FNS_SIM_LARGE(X)", large, "X(%s)")
	b.WriteString("#else\n#define CQ_FNS_SIM_LARGE(X)\n#endif\n#if CQ_SIM && CQ_MPI4\n")
	macroList(b, "CQ_FNS_SIM_MPI4(X)", worldC4, "X(%s)")
	b.WriteString("#else\n#define CQ_FNS_SIM_MPI4(X)\n#endif\n#if CQ_SIM && CQ_MPICH\n")
	macroList(b, "CQ_FNS_SIM_MPIX(X)", worldMPICH, "X(%s)")
	b.WriteString("#else\n#define CQ_FNS_SIM_MPIX(X)\n#endif\n")
}

// simFortran lists the Fortran entry points that only the build for simulator ranks needs.
func simFortran(b *bytes.Buffer, translated []call) {
	var openmpi, mpich []string
	for _, c := range translated {
		n, low := len(c.params)+1, strings.ToLower(c.name)
		if c.large() {
			continue
		}
		openmpi = append(openmpi, fmt.Sprintf("pmpi_%s_, %d", low, n))
		if c.openmpiF08 {
			openmpi = append(openmpi, fmt.Sprintf("pmpi_%s_f08_, %d", low, n))
		}
		if c.mpichF08 {
			mpich = append(mpich, fmt.Sprintf("pmpir_%s_f08_, %d", low, n))
		}
	}
	openmpi, mpich = append(openmpi, worldOpenMPIF...), append(mpich, worldMPICHF...)
	b.WriteString("#if !CQ_SIM\n#define CQ_FFNS_SIM(X)\n#elif CQ_OPENMPI\n")
	macroList(b, "CQ_FFNS_SIM(X)", openmpi, "X(%s)")
	b.WriteString("#else\n")
	macroList(b, "CQ_FFNS_SIM(X)", mpich, "X(%s)")
	b.WriteString("#endif\n")
}

// worldSource writes the wrappers that only the build for simulator ranks has: of calls that are not recorded but
// must not see MPI_COMM_WORLD.
func worldSource(calls []call) []byte {
	var b bytes.Buffer
	b.WriteString(banner + "#include \"recorders.h\"\n\n#if CQ_SIM\n")
	for _, c := range calls {
		if slices.Contains(byWorld, c.name) {
			continue
		}
		guard := c.guard()
		b.WriteString("\n")
		if guard != "" {
			b.WriteString("#if " + guard + "\n")
		}
		plainWrapper(&b, c, inC)
		if !c.large() {
			b.WriteString("#if CQ_OPENMPI\n")
			plainWrapper(&b, c, openmpiF77)
			if c.openmpiF08 {
				plainWrapper(&b, c, openmpiF08)
			}
			if c.mpichF08 {
				b.WriteString("#elif CQ_MPICH\n")
				plainWrapper(&b, c, mpichF08)
			}
			b.WriteString("#endif\n")
		}
		if guard != "" {
			b.WriteString("#endif\n")
		}
	}
	b.WriteString("\n#endif\n")
	return b.Bytes()
}

func plainWrapper(b *bytes.Buffer, c call, f flavour) {
	name, result, give := c.name, "int", "return "
	var decls, args []string
	for _, p := range c.params {
		decls = append(decls, f.declare(p))
		args = append(args, p.name)
	}
	var hidden []string
	if f.fortran {
		name, result, give = strings.ToLower(name), "void", ""
		decls = append(decls, "MPI_Fint *ierr")
		args = append(args, "ierr")
		hidden = c.hidden()
		for _, h := range hidden {
			decls = append(decls, "size_t "+h)
			args = append(args, h)
		}
	}
	callee := withHidden(fmt.Sprintf(c.prefixed(f.callee), name), len(c.params), hidden)
	fmt.Fprintf(b, "CQ_EXPORT %s %s(%s)\n{\n\tcq_resolve();\n%s\t%s%s(%s);\n}\n", result,
		fmt.Sprintf(c.prefixed(f.symbol), name), strings.Join(decls, ", "),
		f.intoApp(c), give, callee, strings.Join(args, ", "))
}
