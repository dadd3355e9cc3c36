package writer

const (
	// shardRows is the usual number of rows per file of a sharded table, which has at most mostShards files: engines
	// plan for each file and look at the statistics of each row group, and there is one or two for each file and
	// epoch.
	shardRows  = 2 << 20
	mostShards = 2
)

// Shards assigns ranks to files: shardOf is the file for the rows and messages of each rank. rows has the number of
// rows of events of each rank. A file gets about perFile rows, or more when that would make too many files; 0 means
// the usual number.
func Shards(rows []int64, perFile int64) (shardOf []int, shards int) {
	if perFile == 0 {
		perFile = shardRows
	}
	all := int64(0)
	for _, n := range rows {
		all += n
	}
	shards = int(max(1, min(1+(all-1)/perFile, mostShards, int64(len(rows)))))
	shardOf = make([]int, len(rows))
	before := int64(0)
	for i, n := range rows {
		shardOf[i] = min(int((before+n/2)*int64(shards)/max(all, 1)), shards-1) // the last ranks may have no rows
		before += n
	}
	return shardOf, shards
}
