package queries

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
)

// paramRead is the parameter of queries that can read the table activity instead of rows, and its values.
const (
	paramRead = "read"
	readAuto  = "auto"
	readRows  = "rows"
	readSums  = "sums"
)

// ErrNoSums is the error of a query with --read sums that the table activity cannot answer. The macro of the query
// then has no rows.
var ErrNoSums = errors.New("there are no sums for this")

const (
	// mostCallsRead is the number of calls in a window of time up to which it is answered from rows: an engine reads
	// their times in about a tenth of a second.
	mostCallsRead = 1 << 20
	// fewCallsRead is that number where no single messages are wanted and sums have steps about as short.
	fewCallsRead = 1 << 17
)

// chooseRead returns the arguments of a query with rows or sums where the parameter read is auto. An error says why
// sums cannot answer.
func (d *DB) chooseRead(ctx context.Context, q *Query, args map[string]string) (map[string]string, error) {
	p := q.param(paramRead)
	if p == nil || !slices.Contains(p.Choices, readSums) {
		return args, nil
	}
	read, given := args[paramRead]
	if !given {
		read = p.Default
	}
	if read != readAuto && read != readSums {
		return args, nil // rows, or a value that will be refused
	}
	without, err := d.withoutSums(ctx, q, args)
	if err != nil {
		return nil, err
	}
	if read == readSums {
		if without != "" {
			return nil, fmt.Errorf("query %s: --%s %s: %w: %s; leave it out, or take %s", q.Name, paramRead, readSums, ErrNoSums,
				without, readRows)
		}
		return args, nil
	}
	args = maps.Clone(args)
	if args == nil {
		args = map[string]string{}
	}
	args[paramRead] = readRows
	calls := q.callsIn(args, d.runs[0].Manifest)
	if without != "" || calls < fewCallsRead || q.listsMessages(args, d.runs[0].Manifest) {
		return args, nil
	}
	blocks, err := d.mergesRanks(ctx, q, args)
	if err != nil || blocks {
		return args, err
	}
	same, err := hasSteps(ctx, d, q, args)
	if err == nil && (calls >= mostCallsRead || same) {
		args[paramRead] = readSums
	}
	return args, err
}

// hasSteps reports whether sums say about all that is wanted: no single messages, and steps that are at least half as
// long as those of the sums.
func hasSteps(ctx context.Context, d *DB, q *Query, args map[string]string) (bool, error) {
	if args["lines"] != "0" || q.param("from-s") == nil {
		return false, nil
	}
	finest, err := finestSums(ctx, d)
	if err != nil {
		return false, err
	}
	bins, given := args["bins"]
	if !given {
		bins = q.param("bins").Default
	}
	n, err := strconv.ParseFloat(bins, 64)
	from, to := q.timeIn(args, d.runs[0].Manifest)
	// A window of whole steps ends a ns before the next one.
	return err == nil && (to-from)*1e9 >= math.Ldexp(n, finest.stepPower-1)-1.5, nil
}

// listsMessages reports whether the answer has a row for each message of the run: of so few there are no sums.
func (q *Query) listsMessages(args map[string]string, m *schema.Manifest) bool {
	p := q.param("lines")
	if p == nil {
		return false
	}
	lines, given := args["lines"]
	if !given {
		lines = p.Default
	}
	n, err := strconv.ParseInt(lines, 10, 64)
	return err == nil && m.Counts.Messages > 0 && m.Counts.Messages <= n
}

// mergesRanks reports whether sums have blocks of more ranks than rows give a row of the answer.
func (d *DB) mergesRanks(ctx context.Context, q *Query, args map[string]string) (bool, error) {
	if q.param("from-rank") == nil || q.param("rows") == nil {
		return false, nil
	}
	finest, err := finestSums(ctx, d)
	if err != nil {
		return false, err
	}
	first, last := q.ranksIn(args, d.runs[0].Manifest)
	most := q.number(args, "rows", math.Inf(1))
	return math.Ceil((last-first+1)/most) < float64(int(1)<<finest.rankPower), nil
}

// withoutSums says why sums cannot answer; "" if they can.
func (d *DB) withoutSums(ctx context.Context, q *Query, args map[string]string) (why string, err error) {
	for _, p := range q.Params {
		if value, given := args[p.Name]; given && p.Kind == "condition" && value != p.Default {
			return fmt.Sprintf("--%s needs rows", p.Name), nil
		}
	}
	if args["side"] == "receive" {
		return "--side receive needs rows", nil
	}
	for _, r := range d.runs {
		if q.param("from-s") == nil && (r.Manifest.Counts.InProgress > 0 || r.Manifest.EndNs == 0) {
			return fmt.Sprintf("calls of run %q never returned, so sums do not tell where the last step ends", r.Name), nil
		}
		if info := tableInfo(r.Manifest, schema.ActivityTable.Name); info == nil || info.Rows == 0 {
			return fmt.Sprintf("run %q has no sums over time; runs with few calls need none, and commq runs profile "+
				"makes those of an older run", r.Name), nil
		}
	}
	if without, err := runWithoutOperations(ctx, d, q); err != nil || without != "" {
		return fmt.Sprintf("the sums of run %q lack collective operations; where an older commq made them, commq runs profile "+
			"makes them again", without), err
	}
	if q.param("by") == nil {
		return "", nil
	}
	if finest, err := finestSums(ctx, d); err != nil || finest.rankPower == 0 {
		return "", err
	}
	return "the run has sums for blocks of ranks, not for each", nil
}

// runWithoutOperations returns the name of a run with collective operations whose sums have none, if the query needs
// them: an older commq made the sums, or the operations were too many that some of their ranks never entered.
func runWithoutOperations(ctx context.Context, d *DB, q *Query) (name string, err error) {
	if q.param("from-s") != nil { // a timeline: it shows calls and messages
		return "", nil
	}
	with := map[string]bool{}
	rows, err := d.Query(ctx, "SELECT run FROM activity WHERE class = 'operations' GROUP BY run")
	if err != nil {
		return "", err
	}
	for rows.Next() {
		with[fmt.Sprint(rows.Row()[0])] = true
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return "", err
	}
	for _, r := range d.runs {
		if r.Manifest.Counts.Collectives > 0 && !with[r.Name] {
			return r.Name, nil
		}
	}
	return "", nil
}

// sums are the shortest steps that the table activity has sums for, of 2^stepPower ns, of the smallest blocks of ranks,
// of 2^rankPower.
type sums struct{ rankPower, stepPower int }

// finestSums reads them once: every tile of a timeline asks.
func finestSums(ctx context.Context, d *DB) (finest sums, err error) {
	d.finest.Lock()
	defer d.finest.Unlock()
	if d.finest.sums != nil {
		return *d.finest.sums, nil
	}
	rows, err := d.Query(ctx, "SELECT rank_power, MIN(step_power) AS least FROM activity GROUP BY rank_power "+
		"ORDER BY rank_power LIMIT 1")
	if err != nil {
		return sums{}, err
	}
	if rows.Next() {
		_, err = fmt.Sscan(fmt.Sprint(rows.Row()...), &finest.rankPower, &finest.stepPower)
	}
	if err = errors.Join(err, rows.Err(), rows.Close()); err == nil {
		d.finest.sums = &finest
	}
	return finest, err
}

// callsIn estimates how many calls of a run there are in the window that the arguments from-s, to-s, from-rank and
// to-rank name, as if they were evenly spread.
func (q *Query) callsIn(args map[string]string, m *schema.Manifest) float64 {
	from, to := q.timeIn(args, m)
	first, last := q.ranksIn(args, m)
	if m.EndNs <= 0 || to < from || last < first {
		return 0
	}
	return float64(m.Counts.Calls) * (to - from) / (float64(m.EndNs) / 1e9) * (last - first + 1) / float64(m.Ranks)
}

// timeIn is the time that the arguments from-s and to-s name, in s.
func (q *Query) timeIn(args map[string]string, m *schema.Manifest) (from, to float64) {
	end := float64(m.EndNs) / 1e9
	return q.number(args, "from-s", 0), min(q.number(args, "to-s", end), end)
}

// ranksIn are the ranks that the arguments from-rank and to-rank name.
func (q *Query) ranksIn(args map[string]string, m *schema.Manifest) (first, last float64) {
	end := float64(m.Ranks - 1)
	return q.number(args, "from-rank", 0), min(q.number(args, "to-rank", end), end)
}

// CheckWindow reports a window of time or of ranks that has nothing of any of the runs in it: all answers would be
// empty.
func (q *Query) CheckWindow(args map[string]string, runs []Run) (err error) {
	for _, r := range runs {
		if err = q.checkWindow(args, r); err == nil {
			return nil
		}
	}
	return err
}

// checkWindow does so for one run.
func (q *Query) checkWindow(args map[string]string, r Run) error {
	from, to := q.number(args, "from-s", 0), q.number(args, "to-s", math.Inf(1))
	first, last := q.number(args, "from-rank", 0), q.number(args, "to-rank", math.Inf(1))
	switch end := r.Manifest.EndNs; {
	case to < from:
		return fmt.Errorf("query %s: --to-s %g: want a time from --from-s %g on", q.Name, to, from)
	case from > float64(end)/1e9 && end > 0:
		return fmt.Errorf("query %s: --from-s %g: want a time within run %q, which took %s", q.Name, from, r.Name,
			units.Duration(end))
	case last < first:
		return fmt.Errorf("query %s: --to-rank %g: want at least --from-rank %g", q.Name, last, first)
	case first >= float64(r.Manifest.Ranks):
		return fmt.Errorf("query %s: --from-rank %g: want a rank of run %q: "+
			"0 to %d", q.Name, first, r.Name, r.Manifest.Ranks-1)
	}
	return nil
}

// CheckBase reports runs that a query of two runs, one of them the base, cannot compare. A single run is compared with
// itself.
func (q *Query) CheckBase(args map[string]string, runs []Run) error {
	if q.param("base") == nil {
		return nil
	}
	if len(runs) > 2 {
		return fmt.Errorf("query %s: %s given; it compares two: name the base and another", q.Name,
			units.Count(int64(len(runs)), "run"))
	}
	base := args["base"]
	if base == "" || slices.ContainsFunc(runs, func(r Run) bool { return r.Name == base }) {
		return nil
	}
	var names []string
	for _, r := range runs {
		names = append(names, r.Name)
	}
	return fmt.Errorf("query %s: --base %s: want one of the runs: %s", q.Name, base, strings.Join(names, ", "))
}

// number is a number of the arguments. unset stands for the default, and for the value of a parameter that the query
// lacks.
func (q *Query) number(args map[string]string, name string, unset float64) float64 {
	p := q.param(name)
	if p == nil {
		return unset
	}
	text, given := args[name]
	if !given {
		text = p.Default
	}
	v, err := strconv.ParseFloat(text, 64)
	if usual, e := strconv.ParseFloat(p.Default, 64); err != nil || e == nil && v == usual && name != "rows" {
		return unset
	}
	return v
}
