package main

import "strings"

// fileRecorder is the recorder of a call of MPI-IO.
func fileRecorder(c call) recorder {
	switch c.recorder {
	case "file_open":
		return recorder{
			before: "uint64_t instance = cq_comm_new_begin(t, {ID}, {comm}, CQ_COUNTED);",
			after:  "cq_file_open_end(t, err, err == MPI_SUCCESS ? {*fh} : (MPI_File)0, instance, {$filename});",
		}
	case "file_close":
		return recorder{before: "int32_t f = cq_file_close_begin(t, {ID}, {*fh});", after: "cq_file_end(t, err, f);",
			unseen: "if (cq.state == CQ_ON)\n\t\t\tcq_object_drop(&cq.files, CQ_FILE_KEY({*fh}));"}
	case "file_delete":
		return recorder{before: "cq_plain_begin(t, {ID}, MPI_COMM_NULL);",
			after: "cq_file_delete_end(t, err, {$filename});"}
	case "file_end":
		return recorder{before: clearOwn + "int32_t f = cq_io_end_begin(t, {ID}, {fh});",
			after: "cq_io_end_end(t, err, f, st);", status: "status"}
	case "file_rw", "file_irw", "file_begin":
		return transfer(c)
	}
	return recorder{before: "int32_t f = cq_file_begin(t, {ID}, {fh});", after: "cq_file_end(t, err, f);"}
}

// clearOwn makes our status report 0 bytes when the library leaves it unchanged.
const clearOwn = "if (st == &own)\n\t\tmemset(st, 0, sizeof own);\n\t"

// transfer is the recorder of a read or write.
func transfer(c call) recorder {
	set := []string{".file = {fh}", ".buf = {buf}", ".count = {count}", ".type = {datatype}"}
	if c.has("offset") {
		set = append(set, ".has_offset = 1", ".offset = {offset}")
	}
	r := recorder{before: "cq_transfer a = {" + strings.Join(set, ", ") + "};\n\tcq_io_begin(t, {ID}, &a);"}
	switch c.recorder {
	case "file_rw":
		r.after, r.status = "cq_io_end(t, err, &a, st);", "status"
		r.before = clearOwn + r.before
	case "file_irw":
		r.after = "cq_io_request_end(t, err, &a, {*request});"
	default:
		r.after = "cq_io_split_end(t, err, &a);"
	}
	return r
}
