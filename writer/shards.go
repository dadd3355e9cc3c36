package writer

const (
	// shardRows is the number of rows per file of a table that has several, up to mostShards.
	shardRows  = 2 << 20
	mostShards = 8
)

// Shards says for each rank, by the number of its rows of events, in which file its rows and messages go, and how many files there are. A file has
// about perFile rows, where there are not too many of them for that; 0 is the usual number.
func Shards(rows []int64, perFile int64) (of []int, shards int) {
	if perFile == 0 {
		perFile = shardRows
	}
	all := int64(0)
	for _, n := range rows {
		all += n
	}
	shards = int(max(1, min(1+(all-1)/perFile, mostShards, int64(len(rows)))))
	of = make([]int, len(rows))
	before := int64(0)
	for i, n := range rows {
		of[i] = int((before + n/2) * int64(shards) / max(all, 1))
		before += n
	}
	return of, shards
}
