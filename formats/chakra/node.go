package chakra

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// nodeType is a NodeType of the format.
type nodeType uint64

const (
	metadataNode nodeType = 1
	compNode     nodeType = 4
	sendNode     nodeType = 5
	recvNode     nodeType = 6
	collNode     nodeType = 7
	mostTypes    nodeType = 8
)

// node has the fields of a Node that an import needs.
type node struct {
	id         uint64
	name       string
	kind       nodeType
	ctrl, data []uint64
	startUs    uint64
	micros     uint64
	hasTime    bool
	inputs     string // of metadata
	attrs      attrs
}

// attrs are the attributes of a node that an import needs.
type attrs struct {
	commType, commSize int64 // -1 if there is none
	src, dst, tag      int64
	root               int64  // -1 if there is none
	group              string // "" if there is none
	device             bool   // is_cpu_op is there and false
}

// The numbers of fields in et_def.proto.
const (
	fieldID, fieldName, fieldType, fieldCtrl, fieldData, fieldStart, fieldDuration, fieldInputs, fieldAttr = 1, 2, 3, 4, 5,
		6, 7, 8, 10

	fieldVersion, fieldGlobalAttr = 1, 2
	fieldAttrName                 = 1
	fieldInputValues              = 1
)

// fieldsOfWholeNumbers are those of AttributeProto that hold a whole number: int32, int64, uint32, uint64 and bool are
// plain varints; sint32 and sint64 are zigzag, and the fixed ones have their own wire types.
var plain = map[protowire.Number]bool{5: true, 7: true, 9: true, 11: true, 13: true, 27: true}

var zigzag = map[protowire.Number]bool{15: true, 17: true}

// attrRoot is the attribute with the root of a collective, a rank of its group. Only commq writes it.
const attrRoot = "comm_root"

// attrString is the field of AttributeProto that holds a string.
const attrString = 29

// mostMessage is more than any message has in bytes. Lists of numbers take up to 8 times as much in memory.
const mostMessage = 1 << 26

// messages reads the messages of a file one by one. The first is the metadata of the file.
type messages struct {
	in  *bufio.Reader
	buf []byte
	n   int64 // messages read
}

// next returns the next message, valid until the next call; io.EOF after the last.
func (m *messages) next() ([]byte, error) {
	size, err := binary.ReadUvarint(m.in)
	if err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("message %d: its length is cut off or no number", m.n+1)
	}
	if size > mostMessage {
		return nil, fmt.Errorf("message %d has %d bytes, which no node has; this is no Chakra trace, or a damaged one", m.n+1,
			size)
	}
	m.n++
	b := bytes.NewBuffer(m.buf[:0])
	got, err := io.CopyN(b, m.in, int64(size)) // grows with what is there, not with what the length says
	m.buf = b.Bytes()
	if err != nil {
		return nil, fmt.Errorf("message %d is cut off: %d of %d bytes", m.n, got, size)
	}
	return m.buf, nil
}

var errDamaged = errors.New("damaged: no field of a protocol buffer")

// fields calls do for each field of a message: a number for varints and fixed ones, bytes for all else.
func fields(b []byte, do func(num protowire.Number, kind protowire.Type, x uint64, bytes []byte) error) error {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errDamaged
		}
		b = b[n:]
		var x uint64
		var sub []byte
		switch kind {
		case protowire.VarintType:
			x, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			sub, n = protowire.ConsumeBytes(b)
		case protowire.Fixed32Type:
			var y uint32
			y, n = protowire.ConsumeFixed32(b)
			x = uint64(y)
		case protowire.Fixed64Type:
			x, n = protowire.ConsumeFixed64(b)
		default:
			n = protowire.ConsumeFieldValue(num, kind, b)
		}
		if n < 0 {
			return errDamaged
		}
		if err := do(num, kind, x, sub); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// parseNode reads a Node.
func parseNode(b []byte) (*node, error) {
	o := &node{attrs: attrs{commType: -1, commSize: -1, src: -1, dst: -1, root: -1}}
	err := fields(b, func(num protowire.Number, kind protowire.Type, x uint64, sub []byte) error {
		switch num {
		case fieldID:
			o.id = x
		case fieldName:
			o.name = string(sub)
		case fieldType:
			o.kind = nodeType(x)
		case fieldCtrl:
			return addDeps(&o.ctrl, kind, x, sub)
		case fieldData:
			return addDeps(&o.data, kind, x, sub)
		case fieldStart:
			o.startUs = x
		case fieldDuration:
			o.micros, o.hasTime = x, true
		case fieldInputs:
			return o.addInputs(sub)
		case fieldAttr:
			return o.attrs.add(sub)
		}
		return nil
	})
	if err == nil && (o.kind == 0 || o.kind >= mostTypes) {
		err = fmt.Errorf("node %d has type %d; want one from 1 to %d", o.id, o.kind, mostTypes-1)
	}
	return o, err
}

// addDeps adds the dependencies of a field: packed, or one of several.
func addDeps(deps *[]uint64, kind protowire.Type, x uint64, sub []byte) error {
	if kind == protowire.VarintType {
		*deps = append(*deps, x)
		return nil
	}
	for len(sub) > 0 {
		x, n := protowire.ConsumeVarint(sub)
		if n < 0 {
			return errDamaged
		}
		*deps = append(*deps, x)
		sub = sub[n:]
	}
	return nil
}

// addInputs keeps the inputs of a node of metadata, which list the process groups.
func (o *node) addInputs(b []byte) error {
	if o.kind != metadataNode {
		return nil
	}
	return fields(b, func(num protowire.Number, _ protowire.Type, _ uint64, sub []byte) error {
		if num == fieldInputValues {
			o.inputs = string(sub)
		}
		return nil
	})
}

// add reads an AttributeProto.
func (a *attrs) add(b []byte) error {
	var name, text string
	number, is := int64(0), false
	err := fields(b, func(num protowire.Number, _ protowire.Type, x uint64, sub []byte) error {
		switch {
		case num == fieldAttrName:
			name = string(sub)
		case num == attrString:
			text = string(sub)
		case plain[num]:
			number, is = int64(x), true
		case zigzag[num]:
			number, is = protowire.DecodeZigZag(x), true
		case num == 19 || num == 21 || num == 23 || num == 25: // fixed32, fixed64, sfixed32, sfixed64
			number, is = int64(x), true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if name == "pg_name" {
		a.group = text
	}
	if !is {
		return nil
	}
	switch name {
	case "comm_type":
		a.commType = number
	case "comm_size":
		a.commSize = number
	case "comm_src":
		a.src = number
	case "comm_dst":
		a.dst = number
	case "comm_tag":
		a.tag = number
	case attrRoot:
		a.root = number
	case "is_cpu_op":
		a.device = number == 0
	}
	return nil
}

// IsTrace reports whether a file that begins with these bytes is a Chakra trace: its first message is GlobalMetadata, a
// version or attributes with names.
func IsTrace(head []byte) bool {
	size, n := protowire.ConsumeVarint(head)
	if n < 0 || size == 0 || size > mostMessage {
		return false
	}
	return isMetadata(head[n:min(uint64(len(head)), uint64(n)+size)])
}

// isMetadata reports whether a message, or its beginning, is GlobalMetadata.
func isMetadata(b []byte) bool {
	num, kind, n := protowire.ConsumeTag(b)
	if n < 0 || kind != protowire.BytesType {
		return false
	}
	size, m := protowire.ConsumeVarint(b[n:])
	if m < 0 {
		return false
	}
	b = b[n+m:]
	sub := b[:min(uint64(len(b)), size)]
	switch num {
	case fieldVersion:
		return len(sub) > 1 && len(sub) < 32 && sub[0] >= '0' && sub[0] <= '9' && bytes.ContainsRune(sub, '.')
	case fieldGlobalAttr:
		name, kind, n := protowire.ConsumeTag(sub)
		return n > 0 && name == fieldAttrName && kind == protowire.BytesType
	}
	return false
}
