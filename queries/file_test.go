package queries

import (
	"strings"
	"testing"
)

// FuzzTable reads CSV files given as parameters: an error, or rows of literals, one for each line.
func FuzzTable(f *testing.F) {
	p := Param{Name: "file", Kind: "file", Columns: []Column{{Name: "rank", Type: "INTEGER"}, {Name: "bytes", Type: "BIGINT"},
		{Name: "share", Type: "DOUBLE"}, {Name: "name", Type: "VARCHAR"}}}
	f.Add("rank,bytes,share,name\n1,2,0.5,x\n,,,\n")
	f.Add("name, SHARE ,bytes,rank,more\n\"it''s\n\",1e308,-9223372036854775808,2147483647,y\n")
	f.Add("rank,bytes,share,name\n1,2,nan,x")
	f.Add("rank,bytes,share,name\n1,2,0x1p-2,'); DROP TABLE x; --")
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := p.rows(text)
		if err != nil {
			return
		}
		for _, row := range rows {
			if !strings.HasPrefix(row, "(") || !strings.HasSuffix(row, ")") {
				t.Errorf("%q", row)
			}
			if strings.Count(row, "'")%2 != 0 {
				t.Errorf("an open quote: %q", row)
			}
		}
	})
}
