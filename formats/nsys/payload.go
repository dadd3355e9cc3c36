package nsys

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"unicode"

	"github.com/commq/commq/formats/training"
)

// payload has the values that NCCL attached to a range; Unknown for those that it did not attach.
type payload struct {
	has                           bool
	comm                          uint64 // 0: none
	bytes                         int64
	peer, root, ranks, rank, cuda int32
}

var noPayload = payload{bytes: training.Unknown, peer: training.Unknown, root: training.Unknown,
	ranks: training.Unknown,
	rank:  training.Unknown, cuda: training.Unknown}

// set takes a field by the name that NCCL gives it, in src/include/nvtx_payload_schemas.h. Only letters count: names of
// columns may be written differently.
func (p *payload) set(name string, v int64) {
	small := int32(training.Unknown)
	if v >= 0 && v <= math.MaxInt32 {
		small = int32(v)
	}
	switch letters(name) {
	case "ncclcommunicatorid":
		p.comm = uint64(v)
	case "messagesizebytes":
		if v >= 0 && v < mostBytes {
			p.bytes = v
		}
	case "peerrank":
		p.peer = small
	case "root":
		p.root = small
	case "noofranks":
		p.ranks = small
	case "rank":
		p.rank = small
	case "cudadevice":
		p.cuda = small
	default:
		return
	}
	p.has = true
}

// mostBytes is more than the size of any operation.
const mostBytes = 1 << 48

func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// schemaKey names a layout of payloads.
type schemaKey struct{ domain, schema int64 }

// field is a number in a payload.
type field struct {
	name   string
	at     int64
	width  int64
	signed bool
}

// payloads are the payloads of an export: the layouts of those in the column binaryData, and by event those that have
// tables of their own.
type payloads struct {
	fields map[schemaKey][]field
	events map[int64]payload
	// unread counts those whose layout is not what the tables say.
	unread int64
}

// entryWidths are the sizes in bytes of the entry types of NVTX that are whole numbers, by their numbers in
// nvToolsExtPayload.h; negative: signed. A long has 8 bytes, as on Linux.
var entryWidths = map[int64]int64{5: -4, 6: 4, 7: -8, 8: 8, 9: -8, 10: 8, 11: -1, 12: 1, 13: -2, 14: 2, 15: -4, 16: 4,
	17: -8, 18: 8, 22: 8}

// readPayloads reads the tables that describe payloads.
func readPayloads(ctx context.Context, f *file) (*payloads, error) {
	p := &payloads{fields: map[schemaKey][]field{}, events: map[int64]payload{}}
	err := f.each(ctx, "NVTX_PAYLOAD_SCHEMA_ENTRIES", []string{"domainId", "schemaId", "idx", "type", "name",
		"offset"}, "",
		func(r *row) {
			width := entryWidths[r.integer(3, 0)]
			at := r.integer(5, -1)
			if at < 0 && r.number(2) == 0 {
				at = 0
			}
			if width == 0 || at < 0 || at > mostPayload {
				return
			}
			key := schemaKey{r.number(0), r.number(1)}
			p.fields[key] = append(p.fields[key], field{r.text(4), at, max(width, -width), width < 0})
		})
	if err != nil {
		return nil, err
	}
	for table := range f.columns {
		if strings.HasPrefix(table, "DYNAMIC_NVTXPAYLOAD_DATATYPE_") && f.hasColumn(table, "eventId") {
			if err := p.readTable(ctx, f, table); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// readTable reads a table of payloads, which nsys export --dynamic-tables=all writes: a column for each field.
func (p *payloads) readTable(ctx context.Context, f *file, table string) error {
	columns := []string{"eventId"}
	for _, c := range f.columns[table] {
		none := noPayload
		if none.set(c, 0); none.has {
			columns = append(columns, c)
		}
	}
	if len(columns) == 1 {
		return nil
	}
	return f.each(ctx, table, columns, "", func(r *row) {
		x := noPayload
		for i := 1; i < len(columns); i++ {
			if r.values[i] != nil {
				x.set(columns[i], r.integer(i, 0))
			}
		}
		p.events[r.number(0)] = x
	})
}

// mostPayload is more than the size of a payload of NCCL.
const mostPayload = 1 << 12

// headerBytes is the length of what stands before a payload in binaryData: the domain, the layout, the size of the
// payload, and where it begins, in 8 bytes each.
const headerBytes = 32

// decode reads a payload of the column binaryData.
func (p *payloads) decode(v any) payload {
	x := noPayload
	var data []byte
	switch v := v.(type) {
	case []byte:
		data = v
	case string:
		if data = []byte(v); len(v) > 0 && strings.Trim(v, "0123456789abcdefABCDEF") == "" {
			data, _ = hex.DecodeString(v)
		}
	default:
		return x
	}
	if len(data) < headerBytes || len(data) > headerBytes+mostPayload {
		p.unread++
		return x
	}
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(data[8*i:])) }
	fields, known := p.fields[schemaKey{word(0), word(1)}]
	body := data[headerBytes:]
	if !known || word(2) != int64(len(body)) {
		p.unread++
		return x
	}
	for _, f := range fields {
		if f.at+f.width <= int64(len(body)) {
			x.set(f.name, f.read(body[f.at:]))
		}
	}
	return x
}

func (f *field) read(b []byte) int64 {
	v := uint64(0)
	for i := range f.width {
		v |= uint64(b[i]) << (8 * i)
	}
	if shift := 64 - 8*f.width; f.signed {
		return int64(v<<shift) >> shift
	}
	return int64(v)
}
