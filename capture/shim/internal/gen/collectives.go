package main

import (
	"fmt"
	"strings"
)

// largeCounts are the recorders of calls that have a form with large counts, MPI_X_c. Fortran programs reach it
// through the C symbol under the plain name, except those in pointerForms.
var largeCounts = map[string]bool{
	"send": true, "isend": true, "send_init": true, "recv": true, "irecv": true, "recv_init": true, "sendrecv": true,
	"isendrecv": true,
	"mrecv":     true, "imrecv": true, "collective": true, "icollective": true, "collective_init": true, "plain": true,
	"rma": true, "rma_request": true, "win_new": true, "file_rw": true, "file_irw": true, "file_begin": true,
}

// large reports whether the call has counts of type MPI_Count.
func (c call) large() bool { return c.is("large-count") }

// prefixed returns a name, or its format, with the prefix MPIX_ instead of MPI_ if the call is an extension.
func (c call) prefixed(name string) string {
	if !c.extension {
		return name
	}
	return strings.NewReplacer("MPI_", "MPIX_", "mpi_", "mpix_", "cq_next.", "cq_next.MPIX_").Replace(name)
}

// id is the name of the call's number in calls_gen.h.
func (c call) id() string {
	if c.extension {
		return "CQ_MPIX_" + c.name
	}
	return "CQ_" + c.name
}

// guard is the macro under which the library has the call; empty if it always does.
func (c call) guard() string {
	switch {
	case c.extension:
		return "CQ_PCOLL"
	case c.large():
		return "CQ_LARGE"
	case !c.openmpi:
		return "CQ_MPI4"
	}
	return ""
}

// collectiveFields are the members of cq_collective by parameter.
var collectiveFields = map[string]string{
	"sendbuf": "sbuf", "buffer": "sbuf", "recvbuf": "rbuf", "sendcount": "scount", "count": "scount",
	"recvcount": "rcount",
	"sendtype":  "stype", "datatype": "stype", "recvtype": "rtype", "root": "root", "op": "op", "comm": "comm",
}

var collectiveArrays = map[string]string{
	"sendcounts": "scounts", "recvcounts": "rcounts", "sendtypes": "stypes", "recvtypes": "rtypes",
	"sdispls": "sdispls", "rdispls": "rdispls",
}

// collectiveIgnored are parameters that do not affect what is exchanged.
var collectiveIgnored = map[string]bool{"info": true, "request": true}

// collectiveKind is the operation of a blocking, nonblocking or persistent call.
func collectiveKind(c call) string {
	kind := strings.TrimSuffix(strings.TrimSuffix(c.name, "_c"), "_init")
	if c.is("nonblocking") {
		kind = strings.ToUpper(kind[1:2]) + kind[2:]
	}
	return kind
}

func collective(c call) (recorder, error) {
	kind := collectiveKind(c)
	set := []string{".kind = CQ_K_" + kind}
	for _, p := range c.params {
		field, array := collectiveFields[p.name], collectiveArrays[p.name]
		if p.name == "recvcount" && kind == "Reduce_scatter_block" {
			field = "scount"
		}
		if p.name == "displs" {
			array = "rdispls"
			if kind == "Scatterv" {
				array = "sdispls"
			}
		}
		switch {
		case array != "":
			set = append(set, fmt.Sprintf(".%s = %s", array, p.name))
		case field != "":
			set = append(set, fmt.Sprintf(".%s = {%s}", field, p.name))
		case !collectiveIgnored[p.name]:
			return recorder{}, fmt.Errorf("%s: parameter %s has no meaning in a collective", c.name, p.name)
		}
		if field == "op" {
			set = append(set, ".has_op = 1")
		}
	}
	if c.large() {
		set = append(set, ".large = 1")
	}
	if c.is("persistent") {
		set = append(set, ".persistent = 1")
	}
	set = append(set, ".fortran = {F}")
	r := recorder{
		before: "cq_collective a = {" + strings.Join(set, ", ") + "};\n\tcq_collective_begin(t, {ID}, &a);",
		after:  "cq_collective_end(t, err, &a);",
	}
	switch c.recorder {
	case "icollective":
		r.after = "cq_icollective_end(t, err, &a, {*request});"
	case "collective_init":
		r.after = "cq_collective_init_end(t, err, &a, {*request});"
	}
	return r, nil
}
