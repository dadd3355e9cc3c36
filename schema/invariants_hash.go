package schema

// checkHashes looks for hashes that the manifest does not know of, and counts those of both ends of a message.
func checkHashes(c *Checker, b Batch) {
	for _, name := range []string{"payload_hash", "payload_sum", "payload_head"} {
		c.onlyIf(c.manifest.Hash != "none", "hash is none", b, name)
	}
	m, ok := b.(*Messages)
	if !ok {
		return
	}
	c.onlyIf(c.manifest.HashVerify, "hash_verify is false", b, "recv_hash")
	for i, sent := range m.PayloadHash {
		if got := m.RecvHash[i]; sent != NullInt64 && got != NullInt64 {
			c.totals.verified++
			if sent != got {
				c.totals.mismatches++
			}
		}
	}
}

// onlyIf reports the first value of a column that must not have any.
func (c *Checker) onlyIf(allowed bool, why string, b Batch, column string) {
	if allowed {
		return
	}
	_, k := c.table.Column(column)
	for i, x := range b.Data(k).([]int64) {
		if x != NullInt64 {
			rank, seq := where(b, i)
			c.bad(rank, seq, "%s is %d; the manifest's %s", column, x, why)
			return
		}
	}
}

// finishHashes compares with the manifest, which counts dropped messages too.
func finishHashes(c *Checker) {
	m, t := &c.manifest.Counts, &c.totals
	dropped := len(c.manifest.Filters) > 0 || c.manifest.Record == "collectives"
	if t.verified > m.HashesVerified || !dropped && t.verified != m.HashesVerified {
		c.wrong("hashes_verified: found %d; the manifest says %d", t.verified, m.HashesVerified)
	}
	if t.mismatches > m.HashMismatches || !dropped && t.mismatches != m.HashMismatches {
		c.wrong("hash_mismatches: found %d; the manifest says %d", t.mismatches, m.HashMismatches)
	}
}
