package queries

import (
	"crypto/sha256"
	"fmt"

	"github.com/commq/commq/internal/kept"
)

// keptFindings are the answers of finding files of a run, by the digest of what of the file determines them.
type keptFindings map[[sha256.Size]byte][]keptFound

// keptFindingsName is the name under which they are kept.
const keptFindingsName = "findings"

// keptFound is a Found whose evidence has types that can be kept.
type keptFound struct {
	row      Found // without its evidence
	evidence []keptValue
}

// keptValue is nil, or the value of one type: of says of which.
type keptValue struct {
	of     byte // 0 for nil, or the first letter of the type
	whole  int64
	number float64
	text   string
	truth  bool
}

func keepValue(value any) (v keptValue, ok bool) {
	switch x := value.(type) {
	case nil:
	case int64:
		v = keptValue{of: 'i', whole: x}
	case float64:
		v = keptValue{of: 'f', number: x}
	case string:
		v = keptValue{of: 's', text: x}
	case bool:
		v = keptValue{of: 'b', truth: x}
	default:
		return v, false
	}
	return v, true
}

func (v *keptValue) value() any {
	switch v.of {
	case 'i':
		return v.whole
	case 'f':
		return v.number
	case 's':
		return v.text
	case 'b':
		return v.truth
	}
	return nil
}

// key is the digest of what of a file determines its answer about a run. The SQL has the defaults of its parameters
// filled in, as Look asks with them.
func (f *Finding) key() [sha256.Size]byte {
	sql, err := f.filled(nil)
	if err != nil { // the engine is not asked then, and nothing is kept
		sql.text = f.text
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %+v %q", f.Name, f.Gain, f.Columns, sql.text))
}

// loadFindings are the answers that are kept.
func loadFindings(r *kept.Results) keptFindings {
	all := keptFindings{}
	kept.Load(r, keptFindingsName, &all)
	return all
}

// answer returns the kept answer of a file.
func (k keptFindings) answer(f *Finding) (all []Found, known bool) {
	rows, known := k[f.key()]
	for i := range rows {
		found := rows[i].row
		for n := range rows[i].evidence {
			found.Evidence = append(found.Evidence, rows[i].evidence[n].value())
		}
		all = append(all, found)
	}
	return all, known
}

// add adds the answer of a file, unless it has a value that cannot be kept.
func (k keptFindings) add(f *Finding, all []Found) {
	rows := make([]keptFound, len(all))
	for i := range all {
		rows[i].row = all[i]
		rows[i].row.Evidence = nil
		for _, value := range all[i].Evidence {
			v, ok := keepValue(value)
			if !ok {
				return
			}
			rows[i].evidence = append(rows[i].evidence, v)
		}
	}
	k[f.key()] = rows
}
