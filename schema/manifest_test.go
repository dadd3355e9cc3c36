package schema

import "testing"

// A derived table without files is missing in a run; the others are there, also without rows.
func TestHeldTables(t *testing.T) {
	m := &Manifest{Tables: []TableInfo{{Name: "events", Rows: 4, Files: []FileInfo{{Bytes: 70}, {Bytes: 20}}},
		{Name: "activity"}, {Name: "messages", Files: []FileInfo{{Bytes: 10}}}}}
	held := m.HeldTables()
	if len(held) != 2 || held[0].Name != "events" || held[1].Name != "messages" {
		t.Fatalf("%v", held)
	}
	if bytes, known := held[0].BytesPerRow(); bytes != 22.5 || !known {
		t.Errorf("events have %v bytes a row, known %v", bytes, known)
	}
	if bytes, known := held[1].BytesPerRow(); bytes != 0 || known {
		t.Errorf("messages without rows have %v bytes a row, known %v", bytes, known)
	}
}
