package ingest

import (
	"math/bits"

	"github.com/commq/commq/schema"
)

// coreSet has a bit for each core of a host, as in the header of a spool file.
type coreSet [512]byte

// count is the number of cores in the set.
func (s *coreSet) count() (n int32) {
	for _, b := range s {
		n += int32(bits.OnesCount8(b))
	}
	return n
}

// add adds the cores of another set.
func (s *coreSet) add(t *coreSet) {
	for i, b := range t {
		s[i] |= b
	}
}

// within reports whether all cores of the set are in another one.
func (s *coreSet) within(t *coreSet) bool {
	for i, b := range s {
		if b&^t[i] != 0 {
			return false
		}
	}
	return true
}

// cores returns which cores the ranks on each host might use. Hosts with a rank that did not record its cores are left
// out.
func (p *plan) cores(j *job) (all []schema.HostCores) {
	sets := make([]map[coreSet]int32, len(p.hosts)) // number of ranks by the cores that they might use
	for _, r := range j.ranks {
		host := p.hostOf[r.rank]
		if sets[host] == nil {
			sets[host] = map[coreSet]int32{}
		}
		sets[host][coreSet(r.files[0].Header.Cores)]++
	}
	for host, of := range sets {
		if of[coreSet{}] == 0 && len(of) > 0 {
			all = append(all, hostCores(int32(host), of))
		}
	}
	return all
}

// hostCores sums the cores that the ranks of a host might use. Groups of ranks are compared with the cores of one of
// them: with cores in common, the sets that launchers make are equal or one is within the other.
func hostCores(host int32, sets map[coreSet]int32) schema.HostCores {
	c, union := schema.HostCores{Host: host}, coreSet{}
	for set, ranks := range sets {
		n := set.count()
		if c.Ranks == 0 || n < c.Least {
			c.Least = n
		}
		c.Ranks, c.Most = c.Ranks+ranks, max(c.Most, n)
		union.add(&set)
	}
	c.Cores = union.count()
	shareCores(&c, c.Ranks, c.Cores)
	for set := range sets {
		sharing := int32(0)
		for other, ranks := range sets {
			if other.within(&set) {
				sharing += ranks
			}
		}
		shareCores(&c, sharing, set.count())
	}
	return c
}

// shareCores records the most crowded set of cores: more ranks than cores, and the fewest cores per rank.
func shareCores(c *schema.HostCores, ranks, cores int32) {
	more := int64(ranks)*int64(c.SharedCores) - int64(c.SharingRanks)*int64(cores)
	if ranks > cores && (c.SharingRanks == 0 || more > 0 || more == 0 && ranks > c.SharingRanks) {
		c.SharingRanks, c.SharedCores = ranks, cores
	}
}
