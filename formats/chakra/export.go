package chakra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/commq/commq/formats/schedule"
	"github.com/commq/commq/formats/spill"
	"github.com/commq/commq/schema"
)

// FirstName is the file of rank 0 in the folder that Export makes.
const FirstName = "chakra.0" + ending

func fileName(rank int32) string { return fmt.Sprintf("chakra.%d%s", rank, ending) }

// Export writes the run in folder dir as Chakra traces, a file for each rank, in a new folder out. Notes are sentences
// about what the traces lack or represent differently. Intermediate data goes to a temporary file.
func Export(ctx context.Context, dir, out string) (notes []string, err error) {
	if err := os.Mkdir(out, 0o777); err != nil {
		return nil, err
	}
	x := &exporter{changed: schedule.Notes{}}
	defer func() {
		if x.spill != nil {
			err = errors.Join(err, x.spill.Close())
		}
		if err != nil {
			_ = os.RemoveAll(out) // the first error counts
		}
	}()
	o := schedule.Options{Keep: x.keeps, WaitBuffered: true, Begin: func(ranks int32) (err error) {
		x.ranks = make([]rankExport, ranks)
		x.spill, err = spill.Create(ranks)
		return err
	}}
	_, all, err := schedule.Each(ctx, dir, o, x.action)
	if err != nil {
		return nil, err
	}
	for what, n := range x.changed {
		all[what] += n
	}
	return all.Texts(), x.files(out)
}

// exporter turns actions into nodes.
type exporter struct {
	ranks   []rankExport
	spill   *spill.File
	changed schedule.Notes // what this format changes
	node    []byte
	text    []byte
}

// rankExport is the state of a rank.
type rankExport struct {
	nodes uint64
	// after are the nodes that must be done before the next one. Those that are only begun do not delay it.
	after []uint64
	open  map[int64]uint64 // nodes that are waited for, by the ID of their action
	// restNs is computing that is left over because nodes have whole microseconds.
	restNs int64
	listed map[int32]bool // groups that a node of metadata lists
}

// collectiveTypes are the CollectiveCommType of operations. REDUCE_SCATTER (7) is also what REDUCE_SCATTER_BLOCK (8)
// is, which ASTRA-sim does not take.
var collectiveTypes = map[schema.CallID]uint64{schema.CallAllreduce: 0, schema.CallReduce: 1, schema.CallAllgather: 2,
	schema.CallAllgatherv: 2, schema.CallGather: 3, schema.CallGatherv: 3, schema.CallScatter: 4, schema.CallScatterv: 4,
	schema.CallBcast: 5, schema.CallAlltoall: 6, schema.CallAlltoallv: 6, schema.CallAlltoallw: 6,
	schema.CallReduceScatter: 7, schema.CallReduceScatterBlock: 7, schema.CallBarrier: 9}

// astraTypes are the collectiveTypes that ASTRA-sim's public source takes; at others it stops.
var astraTypes = map[uint64]bool{0: true, 2: true, 5: true, 6: true, 7: true}

// keeps reports whether the format has the collective. All its ranks must answer the same.
func (x *exporter) keeps(c *schedule.Collective) bool {
	_, ok := collectiveTypes[c.Op]
	return ok && len(c.Members) > 1
}

// mostAfter is the number of nodes that one depends on, without one that joins them.
const mostAfter = 8

// action adds the node of an action.
func (x *exporter) action(a *schedule.Action) error {
	r := &x.ranks[a.Rank]
	switch a.Kind {
	case schedule.Compute:
		ns := a.Ns + r.restNs
		if r.restNs = ns % 1000; ns < 1000 {
			return nil
		}
		return x.add(a, compNode, "compute", uint64(ns/1000))
	case schedule.Wait:
		r.after = append(r.after, r.open[a.ID])
		delete(r.open, a.ID)
		return nil
	}
	if a.ID > 0 && len(r.after) > mostAfter {
		if err := x.add(&schedule.Action{Rank: a.Rank}, compNode, "wait", 0); err != nil {
			return err
		}
	}
	if a.Call == nil && a.Bytes == 0 {
		x.changed["Ends of messages without data, at which a debug build of ASTRA-sim stops"]++
	}
	switch a.Kind {
	case schedule.Send:
		return x.add(a, sendNode, "send", 0, numberAttr("comm_src", int32Value, int64(a.Rank)),
			numberAttr("comm_dst", int32Value, int64(a.Peer)), numberAttr("comm_tag", int32Value, int64(a.Tag)),
			numberAttr("comm_size", int64Value, a.Bytes))
	case schedule.Recv:
		return x.add(a, recvNode, "recv", 0, numberAttr("comm_src", int32Value, int64(a.Peer)),
			numberAttr("comm_dst", int32Value, int64(a.Rank)), numberAttr("comm_tag", int32Value, int64(a.Tag)),
			numberAttr("comm_size", int64Value, a.Bytes))
	}
	return x.collective(a)
}

// collective adds the node of a collective, with the bytes that the rank gives, and before the first one of a group its
// ranks.
func (x *exporter) collective(a *schedule.Action) error {
	c := a.Call
	kind := collectiveTypes[c.Op]
	x.note(c, kind)
	attrs := [][]byte{numberAttr("comm_type", int64Value, int64(kind))}
	if bytes, ok := sizeOf(c); ok {
		attrs = append(attrs, numberAttr("comm_size", int64Value, bytes))
	} else {
		x.changed["Collectives whose size the run does not have, written without one"]++
	}
	if c.Op.Is(schema.FactRooted) && c.Root >= 0 {
		attrs = append(attrs, numberAttr(attrRoot, int32Value, int64(c.Root)))
	} else if c.Op.Is(schema.FactRooted) {
		x.changed["Collectives whose root the run does not have, written without one"]++
	}
	if c.Comm != 0 || !c.IsWorld(int32(len(x.ranks))) {
		if err := x.list(a.Rank, c); err != nil {
			return err
		}
		attrs = append(attrs, textAttr("pg_name", strconv.Itoa(int(c.Comm))))
	}
	return x.add(a, collNode, c.Op.String(), 0, attrs...)
}

// sizeOf returns the bytes that the rank gives, and false if the run does not have them. Of a scatter it is what the
// rank gets.
func sizeOf(c *schedule.Collective) (bytes int64, ok bool) {
	switch c.Op {
	case schema.CallBarrier:
		return 0, true
	case schema.CallBcast, schema.CallReduce:
		return max(c.SendBytes, c.RecvBytes), !c.SendUnknown || !c.RecvUnknown
	case schema.CallScatter, schema.CallScatterv:
		return c.RecvBytes, !c.RecvUnknown
	}
	return c.SendBytes, !c.SendUnknown
}

// note counts what the node of a collective does not tell.
func (x *exporter) note(c *schedule.Collective, kind uint64) {
	switch c.Op {
	case schema.CallAlltoallv, schema.CallAlltoallw, schema.CallAllgatherv, schema.CallGatherv, schema.CallReduceScatter:
		x.changed["Calls of collectives with a count for each rank, written with the sum of what the rank gives"]++
	case schema.CallScatterv:
		x.changed["Calls of MPI_Scatterv, written with what the rank gets"]++
	}
	if !astraTypes[kind] {
		x.changed["Collectives that ASTRA-sim stops at: it has no reductions to a root, gathers, scatters and "+
			"barriers"]++
	}
}

// list adds a node of metadata with the ranks of a group, in the form of PyTorch's, once for each rank.
func (x *exporter) list(rank int32, c *schedule.Collective) error {
	r := &x.ranks[rank]
	if r.listed[c.Comm] {
		return nil
	}
	if r.listed == nil {
		r.listed = map[int32]bool{}
	}
	r.listed[c.Comm] = true
	list, err := json.Marshal([]group{{Name: strconv.Itoa(int(c.Comm)), Description: c.Name, Ranks: c.Members}})
	if err != nil {
		return err
	}
	r.nodes++
	x.begin(r.nodes, metadataNode, "## process_group:init ##")
	values := protowire.AppendString(protowire.AppendTag(nil, fieldInputValues, protowire.BytesType),
		"['"+string(list)+"']")
	x.node = protowire.AppendBytes(protowire.AppendTag(x.node, fieldInputs, protowire.BytesType), values)
	return x.write(rank)
}

// begin begins a node.
func (x *exporter) begin(id uint64, kind nodeType, name string) {
	x.node = protowire.AppendVarint(protowire.AppendTag(x.node[:0], fieldID, protowire.VarintType), id)
	x.node = protowire.AppendString(protowire.AppendTag(x.node, fieldName, protowire.BytesType), name)
	x.node = protowire.AppendVarint(protowire.AppendTag(x.node, fieldType, protowire.VarintType), uint64(kind))
}

// add adds a node that depends on what the rank waited for. The next one depends on it, unless it is only begun.
func (x *exporter) add(a *schedule.Action, kind nodeType, name string, micros uint64, attrs ...[]byte) error {
	r := &x.ranks[a.Rank]
	r.nodes++
	x.begin(r.nodes, kind, name)
	if len(r.after) > 0 {
		var deps []byte
		for _, d := range r.after {
			deps = protowire.AppendVarint(deps, d)
		}
		x.node = protowire.AppendBytes(protowire.AppendTag(x.node, fieldData, protowire.BytesType), deps)
	}
	if micros > 0 {
		x.node = protowire.AppendVarint(protowire.AppendTag(x.node, fieldDuration, protowire.VarintType), micros)
	}
	for _, attr := range append(attrs, numberAttr("is_cpu_op", boolValue, 0)) {
		x.node = protowire.AppendBytes(protowire.AppendTag(x.node, fieldAttr, protowire.BytesType), attr)
	}
	switch {
	case a.ID == 0:
		r.after = append(r.after[:0], r.nodes)
	case !a.Unwaited:
		if r.open == nil {
			r.open = map[int64]uint64{}
		}
		r.open[a.ID] = r.nodes
	}
	return x.write(a.Rank)
}

// write writes the node, with its length before it.
func (x *exporter) write(rank int32) error {
	x.text = append(protowire.AppendVarint(x.text[:0], uint64(len(x.node))), x.node...)
	return x.spill.Append(rank, x.text)
}

// The fields of AttributeProto that an export writes.
const int32Value, int64Value, boolValue protowire.Number = 7, 9, 27

// numberAttr is an attribute with a whole number.
func numberAttr(name string, field protowire.Number, x int64) []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, fieldAttrName, protowire.BytesType), name)
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(x))
}

// textAttr is an attribute with a text.
func textAttr(name, s string) []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, fieldAttrName, protowire.BytesType), name)
	return protowire.AppendString(protowire.AppendTag(b, attrString, protowire.BytesType), s)
}

// version is that of the format, as its own generator writes it.
const version = "1.0.0"

// files writes the files of the ranks, one after another.
func (x *exporter) files(out string) error {
	metadata := protowire.AppendString(protowire.AppendTag(nil, fieldVersion, protowire.BytesType), version)
	head := protowire.AppendBytes(nil, metadata)
	for rank := range x.ranks {
		f, err := os.OpenFile(filepath.Join(out, fileName(int32(rank))), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err != nil {
			return err
		}
		_, err = f.Write(head)
		if err == nil {
			err = x.spill.CopyTo(int32(rank), f)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
