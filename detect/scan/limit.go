package scan

import (
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/internal/payloads"
)

// payloadLimit limits the messages of one payload to maxOfPayload. Few payloads come near, so payloads are counted
// together in classes, and one by one only in classes that reach the limit.
type payloadLimit struct {
	classes [limitClasses]int32
	single  map[uint64]map[ledger.Payload]int32 // by class
	last    ledger.Payload                      // the last full one: often the next message has it too
	hasLast bool                                // last is set
}

const limitClasses = 1 << 12

func newPayloadLimit() *payloadLimit {
	return &payloadLimit{single: map[uint64]map[ledger.Payload]int32{}}
}

func (k *payloadLimit) class(of ledger.Payload) uint64 {
	return payloads.Key(of.Hash, of.Bytes) % limitClasses
}

// reached reports whether maxOfPayload messages of a payload are kept; messages are the kept ones.
func (k *payloadLimit) reached(of ledger.Payload, messages []ledger.Message) bool {
	if k.hasLast && of == k.last {
		return true
	}
	class := k.class(of)
	if k.classes[class] < maxOfPayload {
		return false
	}
	single := k.single[class]
	if single == nil {
		single = map[ledger.Payload]int32{}
		for i := range messages {
			if p := (ledger.Payload{Hash: messages[i].Hash, Bytes: messages[i].Bytes}); k.class(p) == class {
				single[p]++
			}
		}
		k.single[class] = single
	}
	if single[of] < maxOfPayload {
		return false
	}
	k.last, k.hasLast = of, true
	return true
}

// add counts one more message.
func (k *payloadLimit) add(of ledger.Payload) {
	class := k.class(of)
	k.classes[class]++
	if single := k.single[class]; single != nil {
		single[of]++
	}
}
