package main

import (
	"fmt"
	"strings"
)

// Partitioned communication, sessions, processes that are spawned or connect, marks. {text:x} in a recorder's text is
// a string as a cq_text: in Fortran with the hidden length that follows the arguments.
var processRecorders = map[string]recorder{
	"psend_init": {before: "cq_psend_begin(t, {ID}, {buf}, {count}, {datatype}, {dest}, {tag}, {comm});",
		after: "cq_partitioned_end(t, err, {partitions}, {*request}, 0);"},
	"precv_init": {before: "cq_precv_begin(t, {ID}, {buf}, {count}, {datatype}, {dest}, {tag}, {comm});",
		after: "cq_partitioned_end(t, err, {partitions}, {*request}, CQ_R_RECV);"},
	"pready": {before: "cq_pready_begin(t, {ID}, 1, {request});", after: "cq_pready_end(t, err, {partition});"},
	"pready_range": {before: "cq_pready_begin(t, {ID}, {partition_high} - {partition_low} + 1, {request});",
		after: "cq_pready_end(t, err, {partition_low});"},
	"pready_list": {before: "cq_pready_begin(t, {ID}, {length}, {request});",
		after: "cq_pready_end(t, err, cq_lowest(array_of_partitions, {length}));"},
	"parrived": {before: "uint64_t compute = cq_compute_time(t);",
		after: "cq_parrived_end(t, {ID}, err, compute, {*flag}, {partition}, {request});"},

	"comm_from_group": {before: "cq_plain_begin(t, {ID}, MPI_COMM_NULL);"},
	"comm_parent":     {after: "cq_comm_parent_end(t, err, {*parent});"},
	"spawn":           {before: "uint64_t instance = cq_comm_new_begin(t, {ID}, {comm}, CQ_COUNTED);"},
	"plain":           {before: "cq_plain_begin(t, {ID}, MPI_COMM_NULL);", after: "cq_end(t, err);"},
}

// processByHand are the recorders whose wrappers are in process.c.
var processByHand = map[string]bool{"pcontrol": true, "session_init": true, "session_finalize": true}

// processHelpers and processHelpersMPI4 are functions that process.c calls.
var (
	processHelpers     = strings.Fields("Group_rank Group_size Info_free Info_get")
	processHelpersMPI4 = strings.Fields("Group_from_session_pset Session_get_info")
)

// processRecorder is the recorder of a call on sessions, spawned processes, marks or partitions; ok is false for
// other calls.
func processRecorder(c call) (r recorder, ok bool, err error) {
	if c.recorder == "comm_connect" {
		r, err = connecting(c)
		return r, true, err
	}
	r, ok = processRecorders[c.recorder]
	switch c.name {
	case "Comm_create_from_group":
		r.after = "cq_comm_new_end(t, err, {*newcomm}, 4, CQ_NOT_COUNTED, 0, cq_text_key({text:stringtag}));"
	case "Intercomm_create_from_groups":
		r.after = "cq_comm_new_end(t, err, {*newintercomm}, 8, CQ_NOT_COUNTED, 0, cq_text_key({text:stringtag}));"
	case "Comm_spawn":
		r.after = "cq_spawn_end(t, err, {*intercomm}, instance, {root}, {comm}, {text:command});"
	case "Comm_spawn_multiple":
		r.after = "cq_spawn_end(t, err, {*intercomm}, instance, {root}, {comm}, {text:array_of_commands});"
	}
	return r, ok, nil
}

// connecting is the recorder of a call that makes an intercommunicator with processes of another job, or of this one.
// The two sides have different parents and no tag, so communicators are identified by counting those with the same
// two leaders.
func connecting(c call) (recorder, error) {
	switch c.name {
	case "Comm_accept", "Comm_connect":
		return recorder{
			before: "uint64_t instance = cq_comm_new_begin(t, {ID}, {comm}, CQ_COUNTED);",
			after:  "cq_comm_new_end(t, err, {*newcomm}, 8, CQ_COUNTED, instance, -1);",
		}, nil
	case "Comm_join":
		return recorder{
			before: "cq_plain_begin(t, {ID}, MPI_COMM_NULL);",
			after:  "cq_comm_new_end(t, err, {*intercomm}, 8, CQ_NOT_COUNTED, 0, -2);",
		}, nil
	}
	return recorder{}, fmt.Errorf("%s: not known to connect processes", c.name)
}

// isText reports whether the parameter is a string, or an array of strings, whose length is a hidden argument in
// Fortran.
func (p param) isText() bool { return strings.Contains(p.ctype, "char") }

// hidden are the names of the hidden lengths of the call's strings.
func (c call) hidden() []string {
	var names []string
	for _, p := range c.params {
		if p.isText() {
			names = append(names, p.name+"_n")
		}
	}
	return names
}

// textOf returns a string parameter as a cq_text.
func (f flavour) textOf(name string, c call) (string, error) {
	for _, p := range c.params {
		switch {
		case p.name != name || !p.isText():
		case f.fortran:
			return fmt.Sprintf("(cq_text){%[1]s, NULL, (int64_t)%[1]s_n}", name), nil
		case p.array:
			return fmt.Sprintf("(cq_text){NULL, %s, -1}", name), nil
		default:
			return fmt.Sprintf("(cq_text){%s, NULL, -1}", name), nil
		}
	}
	return "", fmt.Errorf("no string %q", name)
}

// withHidden returns the callee cast to the type that includes the hidden lengths.
func withHidden(callee string, params int, hidden []string) string {
	if len(hidden) == 0 {
		return callee
	}
	types := strings.Repeat("void *, ", params+1) + strings.TrimSuffix(strings.Repeat("size_t, ", len(hidden)), ", ")
	return fmt.Sprintf("((void (*)(%s))(void (*)(void))%s)", types, callee)
}
