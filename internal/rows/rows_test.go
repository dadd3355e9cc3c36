package rows

import "testing"

func TestColumnsAreFoundByName(t *testing.T) {
	row := Row{NewHeader("src", "bytes", "y", "call", "exact", "tag"),
		[]any{int32(3), int64(4097), 0.5, "MPI_Send", true, nil}}
	if row.Int("src") != 3 || row.Int("bytes") != 4097 || row.Text("call") != "MPI_Send" || !row.Bool("exact") {
		t.Errorf("%+v", row)
	}
	if y, known := row.OptionalFloat("y"); y != 0.5 || !known {
		t.Errorf("y is %v, %v", y, known)
	}
	if tag, known := row.OptionalInt("tag"); tag != 0 || known {
		t.Errorf("the tag, which is null, is %v, %v", tag, known)
	}
	defer func() {
		if recover() == nil {
			t.Error("a column that is not there is no panic")
		}
	}()
	row.Int("dst")
}
