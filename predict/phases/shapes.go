package phases

import (
	"encoding/binary"
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
)

// shapes numbers values and iterations so that those with the same calls, whatever their peers and sizes, have the
// same number.
type shapes struct {
	sig          *signature.Signature
	values       [][]int32 // by node and value
	bodies       [][]int32 // by loop and iteration
	valueEvents  [][]int64 // number of calls, by node and value
	bodyEvents   [][]int64 // number of calls, by loop and iteration
	numberByText map[string]int32
}

// What a shape is of.
const (
	shapeOfBody = iota
	shapeOfLoop
	shapeOfStretch
)

func findShapes(sig *signature.Signature) *shapes {
	nodes := sig.Nodes()
	s := &shapes{sig: sig, values: make([][]int32, len(nodes)), bodies: make([][]int32, len(nodes)),
		valueEvents: make([][]int64, len(nodes)), bodyEvents: make([][]int64, len(nodes)),
		numberByText: map[string]int32{}}
	for _, n := range slices.Backward(nodes) { // a loop after what is in it
		s.addNode(n)
	}
	return s
}

// addNode finds the shapes at a node; those of its children are known.
func (s *shapes) addNode(n *template.Node) {
	v := &s.sig.Values[n.ID]
	if !n.Loop {
		s.values[n.ID] = make([]int32, len(v.Events))
		s.valueEvents[n.ID] = slices.Repeat([]int64{1}, len(v.Events))
		return
	}
	for _, b := range v.Bodies {
		var key []byte
		events := int64(0)
		for k := 0; k < len(b); k += 2 {
			child := n.Children[b[k]].ID
			key = binary.AppendUvarint(key, uint64(b[k]))
			key = binary.AppendUvarint(key, uint64(s.values[child][b[k+1]]))
			events += s.valueEvents[child][b[k+1]]
		}
		s.bodies[n.ID] = append(s.bodies[n.ID], s.number(n, shapeOfBody, key))
		s.bodyEvents[n.ID] = append(s.bodyEvents[n.ID], events)
	}
	for _, l := range v.Loops {
		items, events := s.refold(n, l), int64(0)
		fold.Each(l, func(body int32) bool { events += s.bodyEvents[n.ID][body]; return true })
		s.values[n.ID] = append(s.values[n.ID], s.number(n, shapeOfLoop, fold.AppendKey(nil, items)))
		s.valueEvents[n.ID] = append(s.valueEvents[n.ID], events)
	}
}

// refold folds the shapes of a loop's iterations.
func (s *shapes) refold(n *template.Node, iterations []fold.Item) []fold.Item {
	var f fold.Sequence
	fold.Each(iterations, func(body int32) bool { f.Add(s.bodies[n.ID][body]); return true })
	return f.Items
}

// number returns the number of a shape at a node.
func (s *shapes) number(n *template.Node, kind byte, key []byte) int32 {
	k := string(append(binary.AppendUvarint([]byte{kind}, uint64(n.ID)), key...))
	number, known := s.numberByText[k]
	if !known {
		number = int32(len(s.numberByText))
		s.numberByText[k] = number
	}
	return number
}
