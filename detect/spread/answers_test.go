package spread

import (
	"testing"

	"github.com/commq/commq/detect/ledger"
)

// TestAnswersAmongReceivesOfOneCall: rank 0 receives messages of ranks 1 and 2 by one call, in any order. It sends to
// rank 1 before that, and to rank 2 after it.
func TestAnswersAmongReceivesOfOneCall(t *testing.T) {
	const token = 1
	messages := []ledger.Message{{Src: 0, Dst: 1, SendSeq: 3, Bytes: token}, {Src: 0, Dst: 2, SendSeq: 9, Bytes: token}}
	first, second := arrival{seq: 5, src: 1}, arrival{seq: 5, src: 2}
	lone := arrival{seq: 1, src: 3}
	for _, list := range [][]arrival{{lone, first, second}, {lone, second, first}} {
		if !areAnswers(messages, []int32{1}, list, anything) {
			t.Errorf("%+v: what comes after them is no answer to rank 2", list)
		}
		if !areAnswered(messages, []int32{0}, list, anything) {
			t.Errorf("%+v: what comes before them is not answered by rank 1", list)
		}
		fromOther := func(a *arrival) bool { return a.src == 3 }
		if areAnswers(messages, []int32{1}, list, fromOther) || areAnswered(messages, []int32{0}, list, fromOther) {
			t.Errorf("%+v: answers among arrivals that do not count", list)
		}
		if areAnswers(messages, []int32{0}, list, anything) {
			t.Errorf("%+v: an answer to rank 1 before its message", list)
		}
		if areAnswered(messages, []int32{1}, list, anything) {
			t.Errorf("%+v: an answer to the last message", list)
		}
	}
}
