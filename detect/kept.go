package detect

import "github.com/commq/commq/schema/payloads"

// keptPayloads counts how many messages of each payload are kept, up to mostOfPayload. Nearly all payloads are far from so many: they are counted
// together in classes, and one by one only in a class that has got so many, which few have.
type keptPayloads struct {
	classes [keptClasses]int32
	single  map[uint64]map[payload]int32 // by class
	last    payload                      // the last one that was full: the next one often is the same
	some    bool                         // there was one
}

const keptClasses = 1 << 12

func newKeptPayloads() *keptPayloads { return &keptPayloads{single: map[uint64]map[payload]int32{}} }

func (k *keptPayloads) class(of payload) uint64 { return payloads.Key(of.hash, of.bytes) % keptClasses }

// full says whether mostOfPayload of a payload are kept; messages are those that are.
func (k *keptPayloads) full(of payload, messages []message) bool {
	if k.some && of == k.last {
		return true
	}
	class := k.class(of)
	if k.classes[class] < mostOfPayload {
		return false
	}
	single := k.single[class]
	if single == nil {
		single = map[payload]int32{}
		for i := range messages {
			if p := (payload{hash: messages[i].hash, bytes: messages[i].bytes}); k.class(p) == class {
				single[p]++
			}
		}
		k.single[class] = single
	}
	if single[of] < mostOfPayload {
		return false
	}
	k.last, k.some = of, true
	return true
}

// add counts one more.
func (k *keptPayloads) add(of payload) {
	class := k.class(of)
	k.classes[class]++
	if single := k.single[class]; single != nil {
		single[of]++
	}
}
