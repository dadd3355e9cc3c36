package inspector

import (
	"encoding/json"
	"io"

	"github.com/commq/commq/formats/jsonstream"
)

// record is an object of a log. Logs of version 4.3 and later have header and metadata only in the dump_stats that a
// dump begins with.
type record struct {
	Header   *header         `json:"header"`
	Metadata *metadata       `json:"metadata"`
	Coll     *collPerf       `json:"coll_perf"`
	P2P      *p2pPerf        `json:"p2p_perf"`
	Stats    *dumpStats      `json:"dump_stats"`
	Proxy    json.RawMessage `json:"proxy_trace"`
}

// header is a communicator, and the rank in it that a record is of.
type header struct {
	ID    string `json:"id"`
	Name  string `json:"comm_name"`
	Rank  int64  `json:"rank"`
	Ranks int64  `json:"n_ranks"`
}

// metadata is the process, and when the dump was written.
type metadata struct {
	Version string `json:"inspector_output_format_version"`
	DumpUs  int64  `json:"dump_timestamp_us"`
	Host    string `json:"hostname"`
	PID     int64  `json:"pid"`
}

type collPerf struct {
	Name   string   `json:"coll"`
	Number int64    `json:"coll_sn"`
	Bytes  *uint64  `json:"coll_msg_size_bytes"`
	ExecUs *float64 `json:"coll_exec_time_us"`
	Timing string   `json:"coll_timing_source"`
	Algo   string   `json:"coll_algo"`
	Proto  string   `json:"coll_proto"`
	Trace  *struct {
		StartUs int64    `json:"coll_start_ts"`
		StopUs  int64    `json:"coll_stop_ts"`
		Kernels []kernel `json:"kernel_events"`
	} `json:"event_trace_ts"`
}

type p2pPerf struct {
	Name   string   `json:"p2p"`
	Number int64    `json:"p2p_sn"`
	Peer   *int64   `json:"p2p_peer"`
	Bytes  *uint64  `json:"p2p_msg_size_bytes"`
	ExecUs *float64 `json:"p2p_exec_time_us"`
	Timing string   `json:"p2p_timing_source"`
	Trace  *struct {
		StartUs int64    `json:"p2p_start_ts"`
		StopUs  int64    `json:"p2p_stop_ts"`
		Kernels []kernel `json:"kernel_events"`
	} `json:"event_trace_ts"`
}

// kernel is the time that a channel of an operation ran, in us since 1970 on the clock of the host.
type kernel struct {
	StartUs int64 `json:"kernel_start_ts"`
	StopUs  int64 `json:"kernel_stop_ts"`
}

// dumpStats counts the records of a dump, and those that the plugin overwrote before it could write them.
type dumpStats struct {
	CollDropped int64 `json:"coll_dropped_total"`
	P2PDropped  int64 `json:"p2p_dropped_total"`
}

// records calls each for the records of a log. cut reports that the log ends within a record, as that of a killed
// process does.
func records(r io.Reader, each func(r *record) error) (cut bool, err error) {
	var marker record
	return jsonstream.Values(r, func(r *record) error {
		if r.Stats != nil {
			marker = *r
		} else if r.Header == nil && r.Metadata == nil {
			r.Header, r.Metadata = marker.Header, marker.Metadata
		}
		return each(r)
	})
}
