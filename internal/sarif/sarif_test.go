package sarif

import (
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

// A log has no fields that are empty, but for results, and those of properties stay.
func TestLogLeavesOutEmptyFields(t *testing.T) {
	for _, found := range []bool{false, true} {
		log := New("1.2.3")
		log.Rule("late", "A rank is late")
		want := []string{`"results": []`}
		if found {
			properties := sarif.NewPropertyBag()
			properties.Add("least", -1)
			log.Result("late", "warning", "rank 2").WithProperties(properties).AddLocation(Location("ring.c", 7, "main"))
			want = []string{`"uri": "ring.c"`, `"startLine": 7`, `"name": "main"`, `"least": -1`, `"ruleIndex": 0`}
		}
		var b strings.Builder
		if err := log.Write(&b); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(b.String(), text) {
				t.Errorf("no %s in\n%s", text, b.String())
			}
		}
		empty := strings.NewReplacer(`"results": []`, "", `"least": -1`, "").Replace(b.String())
		for _, text := range []string{": []", ": {}", ": -1"} {
			if strings.Contains(empty, text) {
				t.Errorf("%s in\n%s", text, empty)
			}
		}
	}
}
