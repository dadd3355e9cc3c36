package nccl

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// validated are the machines and operations of docs/validation/nccl.md, by the words there.
func validated() (map[string]*System, map[string]Operation) {
	without, slow := h100(), h100()
	without.NVLS = false
	slow.NICBytesPerSecond = 25_000_000_000
	return map[string]*System{"DGX H100": h100(), "H100, NVLS off": without, "H100, 8 x 200 Gb/s": slow, "A100": a100()},
		map[string]Operation{"all-reduce": AllReduce, "reduce-scatter": ReduceScatter}
}

// The model's times and choices in docs/validation/nccl.md are those of the code.
func TestValidation(t *testing.T) {
	text, err := os.ReadFile("../../docs/validation/nccl.md")
	if err != nil {
		t.Fatal(err)
	}
	systems, operations := validated()
	_, table, _ := strings.Cut(string(text), "|---|---|---|---|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) < 30 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 8 {
			t.Fatalf("%q has %d cells", row, len(cells))
		}
		var g Group
		_, err := fmt.Sscanf(cells[2], "%d, %d", &g.Ranks, &g.Nodes)
		bytes, err2 := strconv.ParseInt(strings.ReplaceAll(cells[3], ",", ""), 10, 64)
		published, err3 := strconv.ParseFloat(strings.ReplaceAll(cells[4], ",", ""), 64)
		s, o := systems[cells[0]], cells[1]
		if _, ok := operations[o]; err != nil || err2 != nil || err3 != nil || s == nil || !ok {
			t.Fatalf("%q: %v, %v, %v", row, err, err2, err3)
		}
		e := s.Estimate(operations[o], g, bytes, Any)
		us := e.us(bytes)
		want := []string{fmt.Sprintf("%.1f", us), fmt.Sprintf("%.2f", us/published), fmt.Sprint(e.Algorithm, " ", e.Protocol)}
		got := append([]string{strings.ReplaceAll(cells[5], ",", "")}, cells[6:]...)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the page has %v, the model %v", strings.Join(cells[:5], ", "), got, want)
		}
	}
}
