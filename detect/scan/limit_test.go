package scan

import (
	"testing"

	"github.com/commq/commq/detect/ledger"
)

// Two payloads of one class, half a class of each: neither is full before there are maxOfPayload messages with it.
func TestPayloadsOfOneClassAreCountedSeparately(t *testing.T) {
	k := newPayloadLimit()
	a, b := ledger.Payload{Hash: 77, Bytes: 4097}, ledger.Payload{Hash: 78, Bytes: 4097}
	for k.class(a) != k.class(b) {
		b.Hash++
	}
	messages := make([]ledger.Message, 0, maxOfPayload)
	add := func(of ledger.Payload, n int) {
		for range n {
			if k.reached(of, messages) {
				t.Fatalf("full with %d messages in all", len(messages))
			}
			k.add(of)
			messages = append(messages, ledger.Message{Hash: of.Hash, Bytes: of.Bytes})
		}
	}
	add(a, maxOfPayload/2)
	add(b, maxOfPayload/2)
	add(a, maxOfPayload/2)
	if !k.reached(a, messages) || k.reached(b, messages) {
		t.Errorf("with mostOfPayload of a and half as many of b: a full %v, b full %v", k.reached(a, messages),
			k.reached(b, messages))
	}
}
