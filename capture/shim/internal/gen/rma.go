package main

import (
	"fmt"
	"strings"
)

// onesidedFields are the members of cq_onesided by parameter.
var onesidedFields = map[string]string{
	"origin_addr": "obuf", "origin_count": "ocount", "origin_datatype": "otype", "datatype": "otype",
	"result_addr": "rbuf", "result_count": "rcount", "result_datatype": "rtype",
	"target_rank": "target", "target_disp": "disp", "target_count": "tcount", "target_datatype": "ttype", "op": "op",
	"win": "win",
}

// onesided is the recorder of a call that transfers data to or from a window.
func onesided(c call) (recorder, error) {
	var set []string
	for _, p := range c.params {
		field := onesidedFields[p.name]
		switch {
		case field != "":
			set = append(set, fmt.Sprintf(".%s = {%s}", field, p.name))
		case p.name != "compare_addr" && p.name != "request":
			return recorder{}, fmt.Errorf("%s: parameter %s has no meaning in a one-sided call", c.name, p.name)
		}
		switch p.name {
		case "op":
			set = append(set, ".has_op = 1")
		case "result_addr":
			set = append(set, ".has_result = 1")
		case "datatype": // one for all buffers, and no counts
			set = append(set, ".one = 1")
		}
	}
	if c.is("sends") {
		set = append(set, ".sends = 1")
	}
	r := recorder{
		before: "cq_onesided a = {" + strings.Join(set, ", ") + "};\n\tcq_rma_begin(t, {ID}, &a);",
		after:  "cq_rma_end(t, err, &a);",
	}
	if c.recorder == "rma_request" {
		r.after = "cq_rma_request_end(t, err, &a, {*request});"
	}
	return r, nil
}

// windowConstructor is the recorder of a call that makes a window; base is its memory, or baseptr after the call.
func windowConstructor(c call) recorder {
	base, size := "NULL", "CQ_NULL64"
	if c.has("size") {
		size = "{size}"
	}
	switch {
	case c.has("base"):
		base = "{base}"
	case c.has("baseptr"):
		base = "cq_pointed(err, baseptr)"
	}
	return recorder{
		before: "uint64_t instance = cq_comm_new_begin(t, {ID}, {comm}, CQ_COUNTED);",
		after:  fmt.Sprintf("cq_win_new_end(t, err, {*win}, %s, %s, instance);", base, size),
	}
}

// windowRecorders are the recorders of calls on windows that transfer no data.
func windowRecorders() map[string]recorder {
	return map[string]recorder{
		"win_sync": {before: "int32_t w = cq_win_begin(t, {ID}, {win});", after: "cq_win_end(t, err, w);"},
		"win_group": {before: "int32_t w = cq_win_begin(t, {ID}, {win});",
			after: "cq_win_group_end(t, err, w, {group});"},
		"win_lock": {before: "int32_t w = cq_win_lock_begin(t, {ID}, {win}, {rank}, {lock_type});",
			after: "cq_win_end(t, err, w);"},
		"win_target": {before: "int32_t w = cq_win_target_begin(t, {ID}, {win}, {rank});",
			after: "cq_win_end(t, err, w);"},
		"win_test": {before: "uint64_t compute = cq_compute_time(t);",
			after: "cq_win_test_end(t, {ID}, err, compute, {*flag}, {win});"},
		"win_free": {before: "int32_t w = cq_win_free_begin(t, {ID}, {*win});", after: "cq_win_end(t, err, w);",
			unseen: "if (cq.state == CQ_ON)\n\t\t\tcq_object_drop(&cq.windows, CQ_KEY({*win}));"},
	}
}

// pointerForms are calls that return an address as a C pointer: Open MPI has additional Fortran entry points for
// them, with another name.
var pointerForms = map[string]bool{"Win_allocate": true, "Win_allocate_shared": true}

// openmpiPointer is their flavour.
var openmpiPointer = flavour{"mpi_%s_cptr_", "cq_f.pmpi_%s_cptr_", true}
