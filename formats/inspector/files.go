package inspector

import (
	"bytes"

	"github.com/commq/commq/formats/jsonstream"
)

// IsTrace reports whether a file that begins so is a log of NCCL Inspector.
func IsTrace(head []byte) bool {
	has := func(key string) bool { return bytes.Contains(head, []byte(key)) }
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) && has(`"header"`) && has(`"n_ranks"`) &&
		(has(`"coll_perf"`) || has(`"p2p_perf"`) || has(`"dump_stats"`))
}

// IsFolder reports whether a folder has logs of NCCL Inspector.
func IsFolder(path string) bool {
	_, err := find(path)
	return err == nil
}

// find returns the logs of a job: a file alone, or those of a folder.
func find(path string) ([]string, error) {
	return jsonstream.Files(path, func(string) bool { return true }, IsTrace, "logs of NCCL Inspector; want files of "+
		"records with header and coll_perf or p2p_perf (NCCL_INSPECTOR_PROM_DUMP=0)")
}
