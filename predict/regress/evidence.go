package regress

import (
	"fmt"
	"math"
	"slices"
)

// evidenceBits is the least evidence, in bits, with which a law is called exact: the information in the values of a
// group less what it takes to name the law. Many laws are tried, so one fits little information by chance.
const evidenceBits = 7

// weigh determines whether the laws of a group have too little evidence. uses are those of the program's laws,
// information is that of all groups which have the same law.
func (l *Law) weigh(uses *lawUses, information float64) {
	values := map[float64]bool{}
	for _, p := range l.roles[""].Points {
		values[p.Value] = true
	}
	l.thin = l.open || len(values) == tooFewValues || len(l.ranks) < 2
	if len(l.Laws) > 0 && len(values) > 1 && information-l.Laws[0].bits(l.domain.unit(), uses) < evidenceBits {
		l.thin = true
	}
	l.lonely = len(l.Laws) > 0 && l.Laws[0].hasDoubtfulBorders() && l.Laws[0].isLonely(uses)
	l.ofFewNumbers = l.isOfFewNumbers()
}

// tooFewValues is the number of different values that show no law: one is a constant, and two are on many laws.
const tooFewValues = 2

// isLonely reports whether no plain law of the program shows some of the extents that a law divides.
func (h *Hypothesis) isLonely(uses *lawUses) bool {
	return slices.ContainsFunc(h.extents(), func(n int64) bool { return uses.plain[n] == 0 })
}

// fewNumbers is the number of runs up to which one number of each does not show how a program divides its domain.
const fewNumbers = 5

// isOfFewNumbers reports whether only laws of blocks fit, although there are few runs and in all but one of them all
// ranks have the same number: a block of all ranks, a product of blocks along the axes of a grid, and a block of
// another rank round alike there. On a grid that no message shows, the ranks of all runs have the same number.
func (l *Law) isOfFewNumbers() bool {
	if len(l.ranks) > fewNumbers || len(l.Laws) == 0 {
		return false
	}
	ofBlocks := func(h Hypothesis) bool { return len(h.Cuts) > 0 }
	if l.onLine {
		return l.runsThatDiffer() <= 1 && !slices.ContainsFunc(l.Laws, func(h Hypothesis) bool { return !ofBlocks(h) })
	}
	return !l.along && l.runsThatDiffer() == 0 && slices.ContainsFunc(l.Laws, ofBlocks)
}

// runsThatDiffer returns the number of runs whose ranks have different numbers.
func (l *Law) runsThatDiffer() int {
	numbers := map[int64]int{}
	for _, p := range l.roles[""].Points {
		numbers[p.Ranks]++
	}
	differ := 0
	for _, n := range numbers {
		if n > 1 {
			differ++
		}
	}
	return differ
}

// enoughDivisions is the number of different lengths of blocks that show how a program divides an extent: one or two
// agree with several extents and roundings.
const enoughDivisions = 3

// part is an extent that a law divides into blocks, with the border of the blocks if it is doubtful.
type part struct {
	extent, border int64
	trim           Trim
}

// part returns the part that cut k of the law divides.
func (h *Hypothesis) part(k int) part {
	c := &h.Cuts[k][0]
	if h.hasDoubtfulBorders() && c.hasBorder() {
		return part{c.Extent, c.Add, c.Trim}
	}
	return part{extent: c.Extent}
}

// hasBorder reports whether blocks have a border, or lack one.
func (c *Cut) hasBorder() bool { return c.Add != 0 || c.Trim != NoTrim }

// hasDoubtfulBorders reports whether a law is a product of blocks that have different borders, or its blocks lack one,
// and divides an extent that is not round, or has blocks with a border which the last ones lack: the borders make up
// for wrong extents.
func (h *Hypothesis) hasDoubtfulBorders() bool {
	const round = 2 // bits of an extent divided by its largest power of two
	return slices.ContainsFunc(h.Cuts, func(o []Cut) bool {
		return o[0].Add != h.Cuts[0][0].Add || o[0].Trim != NoTrim
	}) && (slices.ContainsFunc(h.extents(), func(n int64) bool { return roundness(n) > round }) ||
		slices.ContainsFunc(h.Cuts, func(o []Cut) bool { return o[0].Add != 0 && o[0].Trim != NoTrim }))
}

// countDivisions notes for each law into how many blocks the runs divide its extents, if that is in few ways. Laws of a
// program share its domain, so the divisions of all count.
func countDivisions(groups []Group, laws []*Law) {
	divisions := map[part][]int64{}
	shown := map[part]bool{}
	for i, l := range laws {
		if len(l.Laws) == 0 {
			continue
		}
		for k, a := range l.Laws[0].Axes {
			n := l.Laws[0].part(k)
			for _, s := range groups[i].Samples {
				if a < len(s.Dims) && !slices.Contains(divisions[n], int64(s.Dims[a])) {
					divisions[n] = append(divisions[n], int64(s.Dims[a]))
				}
			}
			if groups[i].Along > 0 && len(divisions[n]) >= enoughUneven && l.Laws[0].isPlain() &&
				slices.ContainsFunc(divisions[n], l.Laws[0].Cuts[k][0].isUneven) {
				shown[n] = true
			}
		}
	}
	for i, l := range laws {
		if len(l.Laws) == 0 || l.onLine {
			continue
		}
		for k := range l.Laws[0].Axes {
			n := l.Laws[0].part(k)
			if countLengths(n.extent, divisions[n]) < enoughDivisions &&
				!(shown[n] && groups[i].Along > 0 && l.Laws[0].isPlain()) {
				if l.few == nil {
					l.few = map[int][]int64{}
				}
				l.few[k] = divisions[n]
			}
		}
	}
}

// enoughUneven is the number of divisions that show how a program divides an extent if the blocks of one have different
// lengths, the law is plain, and messages go along an axis of the grid: these blocks add up to the extent and show
// which of them have a cell more, the other division tests that, and the messages show the grid.
const enoughUneven = 2

// isPlain reports whether a law has blocks as most programs have them: the first ones have a cell more, and none a
// border.
func (h *Hypothesis) isPlain() bool {
	return !slices.ContainsFunc(h.Cuts, func(cuts []Cut) bool {
		return cuts[0].Rounding != RestFirst || cuts[0].Add != 0 || cuts[0].Trim != NoTrim
	})
}

// isUneven reports whether g blocks of a cut have different lengths.
func (c *Cut) isUneven(g int64) bool {
	first := c.Rounding.block(c.Extent, g, 0)
	for x := int64(1); x < g; x++ {
		if c.Rounding.block(c.Extent, g, x) != first {
			return true
		}
	}
	return false
}

// countLengths returns how many different lengths the longest blocks of an extent have when it is divided into numbers
// of blocks.
func countLengths(extent int64, divisions []int64) int {
	lengths := map[int64]bool{}
	for _, g := range divisions {
		lengths[(extent+g-1)/max(g, 1)] = true
	}
	return len(lengths)
}

// isNewDivision reports whether the preferred law divides an extent at a place into another number of blocks than all
// runs, which divide it in few ways.
func (l *Law) isNewDivision(r *row) bool {
	if len(l.few) == 0 || len(l.Laws) == 0 {
		return false
	}
	for k, a := range l.Laws[0].Axes {
		seen, few := l.few[k]
		if few && a < len(r.g) && !slices.Contains(seen, r.g[a]) {
			return true
		}
	}
	return false
}

// weighAll determines which laws of a program's groups have too little evidence.
func weighAll(laws []*Law) {
	uses, information, seen := usesOfLaws(laws), map[string]float64{}, map[string]bool{}
	for _, l := range laws {
		if len(l.Laws) == 0 {
			continue
		}
		if key := l.text(0) + fmt.Sprint(l.roles[""].Points); !seen[key] { // both sides of messages count once
			seen[key] = true
			information[l.text(0)] += l.information()
		}
	}
	for _, l := range laws {
		all := 0.0
		if len(l.Laws) > 0 {
			all = information[l.text(0)]
		}
		l.weigh(uses, all)
	}
}

// lawUses counts how many different laws of a program use each extent of its domain, and each shape: laws that share
// one share the cost of naming it. plain counts the uses of extents by laws of one block without a border, or of plain
// blocks.
type lawUses struct {
	extents, plain map[int64]int
	shapes         map[string]int
}

func usesOfLaws(laws []*Law) *lawUses {
	uses := &lawUses{map[int64]int{}, map[int64]int{}, map[string]int{}}
	seen := map[string]bool{}
	for _, l := range laws {
		if len(l.Laws) == 0 {
			continue
		}
		text := l.text(0)
		if seen[text] {
			continue
		}
		seen[text] = true
		uses.shapes[l.Laws[0].shape()]++
		for _, n := range l.Laws[0].extents() {
			uses.extents[n]++
			if c := l.Laws[0].Cuts; len(c) == 1 && !c[0][0].hasBorder() || l.Laws[0].isPlain() {
				uses.plain[n]++
			}
		}
	}
	return uses
}

// shape returns a law without its extents and axes; it is equal for laws that differ in nothing else.
func (h *Hypothesis) shape() string {
	var cuts []string
	for _, c := range h.Cuts {
		cuts = append(cuts, fmt.Sprint(c[0].Rounding, c[0].Add, c[0].Trim))
	}
	slices.Sort(cuts)
	return fmt.Sprint(h.C, h.Factor, h.Sum, h.Level, cuts, h.Partition != nil)
}

// extents returns the different extents of a law's preferred cuts.
func (h *Hypothesis) extents() (all []int64) {
	for _, cuts := range h.Cuts {
		if !slices.Contains(all, cuts[0].Extent) {
			all = append(all, cuts[0].Extent)
		}
	}
	return all
}

// information returns the information in the values of a group, in bits. The largest value of a run counts in full, if
// no other run has the same; other values of it differ little from it.
func (l *Law) information() (bits float64) {
	const others = 2
	seen := map[float64]bool{}
	points := l.roles[""].Points // by ranks, then value
	for i := len(points) - 1; i >= 0; i-- {
		p := points[i]
		if seen[p.Value] {
			continue
		}
		seen[p.Value] = true
		if i == len(points)-1 || points[i+1].Ranks != p.Ranks {
			bits += math.Log2(math.Abs(p.Value)/l.domain.unit() + 1)
		} else {
			bits += others
		}
	}
	return bits
}

// bits returns how many bits it takes to name a law whose values are multiples of a unit.
func (h *Hypothesis) bits(unit float64, uses *lawUses) float64 {
	const (
		power, variable, rounding, trim, partition = 2, 3, 1.5, 3, 6
	)
	bits := math.Log2(math.Abs(h.C)/unit + 1)
	for _, p := range h.Powers {
		bits += power * math.Abs(float64(p))
	}
	if h.Factor != "" {
		bits += variable
	}
	for _, t := range h.Sum {
		bits += variable + math.Log2(math.Abs(t.C)/unit+1)
	}
	for _, cuts := range h.Cuts {
		bits += rounding + haloBits[cuts[0].Add]
		if cuts[0].Trim != NoTrim {
			bits += trim
		}
	}
	if h.Level != NoLevel {
		bits += power
	}
	if h.Partition != nil {
		bits += partition
	}
	bits /= float64(max(uses.shapes[h.shape()], 1))
	for _, n := range h.extents() {
		bits += math.Log2(float64(n)) / float64(max(uses.extents[n], 1))
	}
	return bits
}
