package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// flavour is one spelling of a call that programs use.
type flavour struct {
	symbol  string // format of the wrapper's name
	callee  string // format of what it calls
	fortran bool
}

var (
	inC         = flavour{"MPI_%s", "cq_next.%s", false}
	openmpiF77  = flavour{"mpi_%s_", "cq_f.pmpi_%s_", true}
	openmpiF08  = flavour{"mpi_%s_f08_", "cq_f.pmpi_%s_f08_", true}
	mpichF08    = flavour{"mpi_%s_f08_", "cq_f.pmpir_%s_f08_", true}
	mpichLarge  = flavour{"mpi_%s_f08_large_", "cq_f.pmpir_%s_f08_large_", true}
	placeholder = regexp.MustCompile(`\{[^{}]*\}`)
)

// recorder is the code of a wrapper around the call. In its text {x} is the C value of parameter x in either
// language, {*x} the value that x points to after the call, {x[]} an array as the program passes it, {$x} a string
// and its length, {F} 1 in Fortran, {ID} the call's id. status and statuses name the parameter that is replaced by a
// status of ours if the program ignores it.
type recorder struct {
	before, after string
	status        string
	statuses      string // an array; its number is in statusesN
	statusesN     string
	unseen        string // code before an unrecorded call that needs some, such as those from callbacks
	unseenAfter   string // code behind it
}

var recorders = map[string]recorder{
	"send": {before: "cq_send_begin(t, {ID}, {buf}, {count}, {datatype}, {dest}, {tag}, {comm});",
		after: "cq_end(t, err);"},
	"isend": {before: "cq_send_begin(t, {ID}, {buf}, {count}, {datatype}, {dest}, {tag}, {comm});",
		after: "cq_request_end(t, err, {*request}, 0);"},
	"send_init": {before: "cq_send_init_begin(t, {ID}, {buf}, {count}, {datatype}, {dest}, {tag}, {comm});",
		after: "cq_request_end(t, err, {*request}, CQ_R_PERSISTENT);"},
	"recv": {before: "cq_recv_begin(t, {ID}, {buf}, {count}, {datatype}, {source}, {tag}, {comm});",
		after: "cq_recv_end(t, err, st);", status: "status"},
	"irecv": {before: "cq_recv_begin(t, {ID}, {buf}, {count}, {datatype}, {source}, {tag}, {comm});",
		after: "cq_request_end(t, err, {*request}, CQ_R_RECV);"},
	"recv_init": {before: "cq_recv_begin(t, {ID}, {buf}, {count}, {datatype}, {source}, {tag}, {comm});",
		after: "cq_request_end(t, err, {*request}, CQ_R_RECV | CQ_R_PERSISTENT);"},

	"mrecv": {before: "uint32_t m = cq_mrecv_begin(t, {ID}, {buf}, {count}, {datatype}, {*message});",
		after: "cq_mrecv_end(t, err, m, st);", status: "status"},
	"imrecv": {before: "uint32_t m = cq_mrecv_begin(t, {ID}, {buf}, {count}, {datatype}, {*message});",
		after: "cq_imrecv_end(t, err, m, {*request});"},

	"probe": {before: "cq_probe_begin(t, {ID}, {source}, {tag}, {comm});", after: "cq_probe_end(t, err, st);",
		status: "status"},
	"mprobe": {before: "cq_probe_begin(t, {ID}, {source}, {tag}, {comm});",
		after: "cq_mprobe_end(t, err, {*message}, st);", status: "status"},
	"iprobe": {before: "uint64_t compute = cq_compute_time(t);",
		after:  "cq_iprobe_end(t, {ID}, err, compute, {*flag}, {source}, {tag}, {comm}, MPI_MESSAGE_NULL, 0, st);",
		status: "status"},
	"improbe": {before: "uint64_t compute = cq_compute_time(t);",
		after: "cq_iprobe_end(t, {ID}, err, compute, {*flag}, {source}, {tag}, {comm}, {*flag} ? {*message} : MPI_MESSAGE_NULL, 1, st);", status: "status"},

	"wait": {before: "cq_req r = cq_wait_begin(t, {ID}, {*request});", after: "cq_wait_end(t, err, {F}, r, st);",
		status: "status", unseen: oneRequest, unseenAfter: oneRequestAfter},
	"test": {before: "uint64_t key = cq_test_begin(t, CQ_KEY({*request})), compute = cq_compute_time(t);",
		after:  "cq_test_end(t, {ID}, err, {F}, compute, {*flag}, key, {*request} == MPI_REQUEST_NULL, st);",
		status: "status", unseen: oneRequest, unseenAfter: oneRequestAfter},
	"waitany": {
		before: "const uint64_t *keys = cq_request_keys(t, {array_of_requests[]:count});\n\t" +
			"cq_waitany_begin(t, {ID});",
		after:  "cq_waitany_end(t, err, {*indx}, {array_of_requests[]:count}, keys, st);",
		status: "status",
		unseen: requestsOf("count"), unseenAfter: requestsAfter("count")},
	"testany": {
		before: "const uint64_t *keys = cq_request_keys(t, {array_of_requests[]:count});\n\t" +
			"uint64_t compute = cq_compute_time(t);",
		after:  "cq_any_end(t, {ID}, err, compute, {*flag}, {*indx}, {array_of_requests[]:count}, keys, st);",
		status: "status",
		unseen: requestsOf("count"), unseenAfter: requestsAfter("count")},
	"waitall": {before: "cq_waitall_begin(t, {ID}, {array_of_requests[]:count});",
		after: "cq_waitall_end(t, err, {array_of_requests[]:count}, st);", statuses: "array_of_statuses",
		statusesN: "count", unseen: requestsOf("count"), unseenAfter: requestsAfter("count")},
	"testall": {
		before: "const uint64_t *keys = cq_request_keys(t, {array_of_requests[]:count});\n\t" +
			"uint64_t compute = cq_compute_time(t);",
		after:    "cq_testall_end(t, {ID}, err, compute, {*flag}, {array_of_requests[]:count}, keys, st);",
		statuses: "array_of_statuses", statusesN: "count",
		unseen: requestsOf("count"), unseenAfter: requestsAfter("count")},
	"waitsome": {
		before: "const uint64_t *keys = cq_request_keys(t, {array_of_requests[]:incount});\n\t" +
			"cq_waitany_begin(t, {ID});",
		after:    "cq_waitsome_end(t, err, {*outcount}, array_of_indices, {F} * cq.f_base, keys, st);",
		statuses: "array_of_statuses", statusesN: "incount",
		unseen: requestsOf("incount"), unseenAfter: requestsAfter("incount")},
	"testsome": {
		before: "const uint64_t *keys = cq_request_keys(t, {array_of_requests[]:incount});\n\t" +
			"uint64_t compute = cq_compute_time(t);",
		after:    "cq_testsome_end(t, {ID}, err, compute, {*outcount}, array_of_indices, {F} * cq.f_base, keys, st);",
		statuses: "array_of_statuses", statusesN: "incount",
		unseen: requestsOf("incount"), unseenAfter: requestsAfter("incount")},

	"request_get_status": {before: "uint64_t compute = cq_compute_time(t);",
		after: "cq_get_status_end(t, {ID}, err, compute, {*flag}, {request}, st);", status: "status"},
	"request_free": {before: "cq_request_free_begin(t, {ID}, {*request});", after: "cq_end(t, err);",
		unseen: "if (cq.state == CQ_ON)\n\t\t\tcq_request_freed_unseen({*request});"},
	"cancel": {before: "cq_request_begin(t, {ID}, {*request});", after: "cq_end(t, err);"},
	"start": {before: "cq_start_begin(t, {ID}, request, 1, {F});",
		after: "cq_start_end(t, err, request, 1, {F});"},
	"startall": {before: "cq_start_begin(t, {ID}, array_of_requests, {count}, {F});",
		after: "cq_start_end(t, err, array_of_requests, {count}, {F});"},

	"comm_idup": {before: "uint64_t instance = cq_comm_new_begin(t, {ID}, {comm}, CQ_COUNTED);",
		after:       "cq_comm_idup_end(t, err, {*newcomm}, {comm}, instance, {*request});",
		unseenAfter: "if (err == MPI_SUCCESS)\n\t\t\tcq_comm_made_unseen({*newcomm}, {comm});"},
	"comm_free": {before: "cq_comm_free_begin(t, {ID}, {*comm});", after: "cq_comm_free_end(t, err);",
		unseen: "if (cq.state == CQ_ON)\n\t\t\tcq_comm_drop(CQ_KEY({*comm}));"},
	"type_free": {before: "cq_type_drop(CQ_KEY({*datatype}));", after: "cq_leave(t);",
		unseen: "if (cq.state == CQ_ON)\n\t\t\tcq_type_drop(CQ_KEY({*datatype}));"},
	"abort": {before: "cq_plain_begin(t, {ID}, CQ_AS_APP({comm}));\n\tcq_abort_before(t);",
		after:  "cq_end(t, err);",
		unseen: "if (cq.state == CQ_ON && cq_mine != NULL)\n\t\t\tcq_abort_before(cq_mine);"},
}

// What a completion call that is not recorded needs, so that its requests do not stay in the tables.
const (
	oneRequest      = "cq_unseen u = cq_unseen_begin((cq_array){request, 1, {F}});"
	oneRequestAfter = "cq_unseen_end(&u, (cq_array){request, 1, {F}});"
)

func requestsOf(n string) string {
	return "cq_unseen u = cq_unseen_begin({array_of_requests[]:" + n + "});"
}

func requestsAfter(n string) string { return "cq_unseen_end(&u, {array_of_requests[]:" + n + "});" }

// byHand are the recorders whose wrappers are in wrappers.c.
var byHand = map[string]bool{"init": true, "finalize": true, "comm_set_name": true}

// constructors lists, by call, the kind of communicator as in schema.CommKind, the parent, the result, and the tag of
// those that are not collective over the parent.
var constructors = map[string]struct {
	kind              int
	parent, made, key string
}{
	"Comm_dup":                   {2, "comm", "newcomm", ""},
	"Comm_dup_with_info":         {2, "comm", "newcomm", ""},
	"Comm_split":                 {3, "comm", "newcomm", ""},
	"Comm_split_type":            {3, "comm", "newcomm", ""},
	"Comm_create":                {4, "comm", "newcomm", ""},
	"Comm_create_group":          {4, "comm", "newcomm", "tag"},
	"Cart_create":                {5, "comm_old", "comm_cart", ""},
	"Cart_sub":                   {5, "comm", "newcomm", ""},
	"Graph_create":               {6, "comm_old", "comm_graph", ""},
	"Dist_graph_create":          {7, "comm_old", "comm_dist_graph", ""},
	"Dist_graph_create_adjacent": {7, "comm_old", "comm_dist_graph", ""},
	"Intercomm_create":           {8, "local_comm", "newintercomm", "tag"},
	"Intercomm_merge":            {9, "intercomm", "newintracomm", ""},
}

func constructor(c call) (recorder, error) {
	k, ok := constructors[c.name]
	if !ok {
		return recorder{}, fmt.Errorf("%s: not in constructors", c.name)
	}
	counted, key := "CQ_COUNTED", "0"
	if k.key != "" {
		counted, key = "CQ_NOT_COUNTED", "{"+k.key+"}"
	}
	return recorder{
		before:      fmt.Sprintf("uint64_t instance = cq_comm_new_begin(t, {ID}, {%s}, %s);", k.parent, counted),
		after:       fmt.Sprintf("cq_comm_new_end(t, err, {*%s}, %d, %s, instance, %s);", k.made, k.kind, counted, key),
		unseenAfter: fmt.Sprintf("if (err == MPI_SUCCESS)\n\t\t\tcq_comm_made_unseen({*%[1]s}, {*%[1]s});", k.made),
	}, nil
}

// sendrecv is the recorder of MPI_Sendrecv and its variants; the _replace forms have one buffer.
func sendrecv(c call) recorder {
	r := recorder{
		before: "cq_sendrecv_begin(t, {ID}, {sendbuf}, {sendcount}, {sendtype}, {dest}, {sendtag}, {comm}, {source});\n\tcq_receive in = {{recvbuf}, {recvcount}, {recvtype}, {source}, {recvtag}};",
		after:  "cq_sendrecv_end(t, err, in, st);",
		status: "status",
	}
	if !c.has("sendbuf") {
		one := strings.NewReplacer("{sendbuf}", "{buf}", "{recvbuf}", "{buf}", "{sendcount}", "{count}",
			"{recvcount}", "{count}", "{sendtype}", "{datatype}", "{recvtype}", "{datatype}")
		r.before = one.Replace(r.before)
	}
	if c.is("nonblocking") {
		r.before = strings.NewReplacer("cq_sendrecv_begin", "cq_send_begin", ", {source});\n", ");\n").Replace(r.before)
		r.after, r.status = "cq_isendrecv_end(t, err, in, {*request});", ""
	}
	return r
}

func recorderOf(c call) (recorder, error) {
	switch c.recorder {
	case "collective", "icollective", "collective_init":
		return collective(c)
	case "comm_new":
		return constructor(c)
	case "sendrecv", "isendrecv":
		return sendrecv(c), nil
	case "rma", "rma_request":
		return onesided(c)
	case "win_new":
		return windowConstructor(c), nil
	}
	if strings.HasPrefix(c.recorder, "file_") {
		return fileRecorder(c), nil
	}
	if r, ok := windowRecorders()[c.recorder]; ok {
		return r, nil
	}
	if r, ok, err := processRecorder(c); ok {
		return r, err
	}
	r, ok := recorders[c.recorder]
	if !ok {
		return recorder{}, fmt.Errorf("%s: unknown recorder %q", c.name, c.recorder)
	}
	return r, nil
}

// fortranParams are the parameters of the Fortran form, without ierr.
func (c call) fortranParams() []param {
	if c.recorder == "init" { // no argc and argv
		return c.params[2:]
	}
	if c.recorder == "pcontrol" { // only the level
		return c.params[:1]
	}
	return c.params
}

func wrapSource(calls []call) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(banner + "#include \"lifetime.h\"\n")
	for _, c := range calls {
		if byHand[c.recorder] || processByHand[c.recorder] {
			continue
		}
		guard := c.guard()
		if guard != "" {
			b.WriteString("\n#if " + guard)
		}
		if err := wrapCall(&b, c); err != nil {
			return nil, err
		}
		if guard != "" {
			b.WriteString("#endif\n")
		}
	}
	return b.Bytes(), nil
}

func wrapCall(b *bytes.Buffer, c call) error {
	r, err := recorderOf(c)
	if err != nil {
		return err
	}
	b.WriteString("\n")
	if err := wrapper(b, c, r, inC); err != nil {
		return err
	}
	if c.large() {
		return largeFortran(b, c, r)
	}
	b.WriteString("#if CQ_OPENMPI\n")
	flavours := []flavour{openmpiF77, openmpiF08}
	if pointerForms[c.name] {
		flavours = append(flavours, openmpiPointer)
	}
	for _, f := range flavours {
		if err := wrapper(b, c, r, f); err != nil {
			return err
		}
	}
	if c.mpichF08 {
		b.WriteString("#elif CQ_MPICH\n")
		if err := wrapper(b, c, r, mpichF08); err != nil {
			return err
		}
	}
	b.WriteString("#endif\n")
	return nil
}

// largeFortran writes the wrapper of a call's mpi_f08 form with large counts if MPICH has one that does not arrive
// through the C symbol.
func largeFortran(b *bytes.Buffer, c call, r recorder) error {
	if !pointerForms[strings.TrimSuffix(c.name, "_c")] {
		return nil
	}
	b.WriteString("#if CQ_MPICH\n")
	err := wrapper(b, c, r, mpichLarge)
	b.WriteString("#endif\n")
	return err
}

// wrapper writes one wrapper. The parameters of a Fortran form are all addresses; ierr, the last, may be NULL.
func wrapper(b *bytes.Buffer, c call, r recorder, f flavour) error {
	name := c.name
	var decls, args []string
	for _, p := range c.params {
		decls = append(decls, f.declare(p))
		args = append(args, p.name)
	}
	var hidden []string
	if f.fortran {
		name = strings.TrimSuffix(strings.ToLower(name), "_c")
		decls = append(decls, "MPI_Fint *ierr")
		hidden = c.hidden()
		for _, h := range hidden {
			decls = append(decls, "size_t "+h)
		}
	}
	callee := withHidden(fmt.Sprintf(c.prefixed(f.callee), name), len(c.params), hidden)
	before, err := f.expand(r.before, c)
	if err != nil {
		return err
	}
	after, err := f.expand(r.after, c)
	if err != nil {
		return err
	}
	result := "int"
	if f.fortran {
		result = "void"
	}
	fmt.Fprintf(b, "CQ_EXPORT %s %s(%s)\n{\n%s\tcq_thread *t = cq_enter();\n", result,
		fmt.Sprintf(c.prefixed(f.symbol), name), strings.Join(decls, ", "), f.intoApp(c))
	plain := strings.Join(args, ", ")
	lengths := ""
	for _, h := range hidden {
		lengths += ", " + h
	}
	unseen, err := f.unseen(r, c, callee, plain, lengths)
	if err != nil {
		return err
	}
	b.WriteString(unseen)
	b.WriteString(f.statusOf(r))
	if before != "" {
		fmt.Fprintf(b, "\t%s\n", before)
	}
	for i, a := range args {
		if a == r.status || a == r.statuses {
			args[i] = "st"
		}
	}
	if f.fortran {
		fmt.Fprintf(b, "\t%s(%s, &err%s);\n\t%s\n\tif (ierr != NULL)\n\t\t*ierr = err;\n}\n", callee,
			strings.Join(args, ", "), lengths, after)
	} else {
		fmt.Fprintf(b, "\tint err = %s(%s);\n\t%s\n\treturn err;\n}\n", callee, strings.Join(args, ", "), after)
	}
	return nil
}

// unseen is the part of a wrapper that makes the call without recording it. args are its arguments, lengths the hidden
// ones behind ierr.
func (f flavour) unseen(r recorder, c call, callee, args, lengths string) (string, error) {
	before, err := f.expand(r.unseen, c)
	if err != nil {
		return "", err
	}
	after, err := f.expand(r.unseenAfter, c)
	if err != nil {
		return "", err
	}
	if before != "" {
		before = "\t\t" + before + "\n"
	}
	if after != "" {
		after = "\t\t" + after + "\n"
	}
	const test = "\tif (CQ_UNLIKELY(t == NULL))"
	switch {
	case f.fortran && after != "":
		return fmt.Sprintf("\tMPI_Fint err = MPI_SUCCESS;\n"+test+" {\n%s\t\t%s(%s, &err%s);\n%s"+
			"\t\tif (ierr != NULL)\n\t\t\t*ierr = err;\n\t\treturn;\n\t}\n", before, callee, args, lengths, after), nil
	case f.fortran:
		return fmt.Sprintf(test+" {\n%s\t\t%s(%s, ierr%s);\n\t\treturn;\n\t}\n\tMPI_Fint err = MPI_SUCCESS;\n",
			before, callee, args, lengths), nil
	case after != "":
		return fmt.Sprintf(test+" {\n%s\t\tint err = %s(%s);\n%s\t\treturn err;\n\t}\n", before, callee, args,
			after), nil
	case before != "":
		return fmt.Sprintf(test+" {\n%s\t\treturn %s(%s);\n\t}\n", before, callee, args), nil
	}
	return fmt.Sprintf(test+"\n\t\treturn %s(%s);\n", callee, args), nil
}

func (f flavour) declare(p param) string {
	if !f.fortran {
		d := p.ctype
		if !strings.HasSuffix(d, "*") {
			d += " "
		}
		d += p.name
		if p.array {
			d += "[]"
		}
		return d
	}
	if strings.HasPrefix(strings.TrimPrefix(p.ctype, "const "), "void") {
		return "void *" + p.name
	}
	if p.isText() {
		return "char *" + p.name
	}
	if p.ctype == "MPI_Aint" || p.ctype == "MPI_Offset" {
		return p.ctype + " *" + p.name
	}
	return "MPI_Fint *" + p.name
}

// statusOf declares st, which the library gets instead of the program's status.
func (f flavour) statusOf(r recorder) string {
	switch {
	case r.status != "" && f.fortran:
		return fmt.Sprintf("\tMPI_Status own, *st = CQ_F_IGNORE(%[1]s) ? &own : (MPI_Status *)(void *)%[1]s;\n",
			r.status)
	case r.status != "":
		return fmt.Sprintf("\tMPI_Status own, *st = %[1]s == MPI_STATUS_IGNORE ? &own : %[1]s;\n", r.status)
	case r.statuses != "" && f.fortran:
		return fmt.Sprintf("\tMPI_Status *st = cq_statuses(t, %[1]s, CQ_F_IGNORE_ALL(%[1]s), *%[2]s);\n", r.statuses,
			r.statusesN)
	case r.statuses != "":
		return fmt.Sprintf("\tMPI_Status *st = cq_statuses(t, %[1]s, %[1]s == MPI_STATUSES_IGNORE, %[2]s);\n",
			r.statuses, r.statusesN)
	}
	return ""
}

// expand replaces the placeholders of a recorder's text by the flavour's expressions.
func (f flavour) expand(text string, c call) (string, error) {
	var bad error
	out := placeholder.ReplaceAllStringFunc(text, func(m string) string {
		e, err := f.expression(m[1:len(m)-1], c)
		if err != nil {
			bad = fmt.Errorf("%s: %w", c.name, err)
		}
		return e
	})
	return out, bad
}

func (f flavour) expression(what string, c call) (string, error) {
	if what == "ID" {
		return c.id(), nil
	}
	if what == "F" {
		if f.fortran {
			return "1", nil
		}
		return "0", nil
	}
	if text, ok := strings.CutPrefix(what, "$"); ok {
		if f.fortran {
			return fmt.Sprintf("%[1]s, cq_trimmed(%[1]s, %[1]s_n)", text), nil
		}
		return fmt.Sprintf("%[1]s, cq_length(%[1]s)", text), nil
	}
	if array, n, ok := strings.Cut(what, "[]:"); ok {
		if f.fortran {
			return fmt.Sprintf("(cq_array){%s, *%s, 1}", array, n), nil
		}
		return fmt.Sprintf("(cq_array){%s, %s, 0}", array, n), nil
	}
	if name, ok := strings.CutPrefix(what, "text:"); ok {
		return f.textOf(name, c)
	}
	name, pointed := strings.CutPrefix(what, "*")
	for _, p := range c.params {
		if p.name == name {
			return f.value(p, pointed)
		}
	}
	if strings.HasPrefix(what, ".") || strings.Contains(what, ",") {
		return "{" + what + "}", nil
	}
	return "", fmt.Errorf("no parameter %q", name)
}

// value returns the C value of a parameter.
func (f flavour) value(p param, pointed bool) (string, error) {
	base := strings.TrimSpace(strings.TrimSuffix(p.ctype, "*"))
	if !f.fortran {
		if pointed {
			return "*" + p.name, nil
		}
		return p.name, nil
	}
	convert := map[string]string{"MPI_Comm": "CQ_COMM", "MPI_Datatype": "CQ_TYPE", "MPI_Op": "CQ_OP",
		"MPI_Request": "CQ_REQUEST", "MPI_Message": "CQ_MESSAGE", "MPI_Win": "CQ_WIN", "MPI_File": "CQ_FILE",
		"MPI_Group": "CQ_GROUP"}[base]
	switch {
	case convert != "":
		return fmt.Sprintf("%s(*%s)", convert, p.name), nil
	case p.name == "indx":
		return "cq_f_index(*indx)", nil
	case p.name == "flag":
		return "(*flag & 1)", nil
	case base == "int" || base == "MPI_Aint" || base == "MPI_Offset":
		return "*" + p.name, nil
	case base == "MPI_Count":
		return "*(const MPI_Count *)(const void *)" + p.name, nil
	case base == "const void" || base == "void":
		return "cq_f_buffer(" + p.name + ")", nil
	}
	return "", fmt.Errorf("parameter %s of type %q has no Fortran form here", p.name, p.ctype)
}
