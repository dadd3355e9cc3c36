package paraver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// unnumberedName is the name of the type of events of calls that Extrae has no number for.
const unnumberedName = "MPI calls without a number of Extrae"

// typeNames are the names of the event types.
var typeNames = []struct {
	typ  int
	name string
}{{typePointToPoint, "MPI Point-to-point"}, {typeCollective, "MPI Collective Comm"}, {typeOther, "MPI Other"},
	{typeOneSided, "MPI One-sided"}, {typeIO, "MPI I/O"},
	{typeUnnumbered, unnumberedName}}

// names writes the configuration: the names of states, events and their values.
func (x *exporter) names(ctx context.Context, from writer.Opened, to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprint(w, "DEFAULT_OPTIONS\n\nLEVEL               THREAD\nUNITS               NANOSEC\nLOOK_BACK           "+
		"100\nSPEED               1\nFLAG_ICONS          ENABLED\n"+
		"NUM_OF_STATE_COLORS 1000\nYMAX_SCALE          37\n\n\nDEFAULT_SEMANTIC\n\nTHREAD_FUNC          State As "+
		"Is\n\n\nSTATES\n")
	for i, name := range stateNames {
		fmt.Fprintf(w, "%d    %s\n", i, name)
	}
	fmt.Fprint(w, "\n\nSTATES_COLOR\n")
	for i, c := range stateColours {
		fmt.Fprintf(w, "%d    {%d,%d,%d}\n", i, c[0], c[1], c[2])
	}
	for _, t := range typeNames {
		var values []string
		seen := map[int]bool{}
		for _, call := range slices.Sorted(maps.Keys(x.used)) {
			if c := codes[call]; c.typ == t.typ && !seen[c.value] {
				seen[c.value] = true
				values = append(values, fmt.Sprintf("%d   %s", c.value,
					strings.TrimSuffix(schema.Calls[call].Name, "_c")))
			}
		}
		if len(values) > 0 {
			section(w, fmt.Sprintf("9   %d    %s", t.typ, t.name), append(values, "0   Outside MPI"))
		}
	}
	section(w, fmt.Sprintf("0   %d    Send Size in MPI Global OP\n0   %d    Recv Size in MPI Global OP\n0   %d    "+
		"Root in MPI Global OP\n0   %d    Communicator in MPI Global OP",
		typeSent, typeReceived, typeRoot, typeComm), nil)
	if len(x.sites) > 0 {
		functions, lines, err := x.callsites(ctx, from)
		if err != nil {
			return err
		}
		section(w, fmt.Sprintf("0   %d    Caller at level 1", typeFunction), append(functions, "0   End"))
		section(w, fmt.Sprintf("0   %d    Caller line at level 1", typeLine), append(lines, "0   End"))
	}
	return w.Flush()
}

// section writes event types with the names of their values.
func section(w io.Writer, types string, values []string) {
	fmt.Fprintf(w, "\n\nEVENT_TYPE\n%s\n", types)
	if values != nil {
		fmt.Fprintf(w, "VALUES\n%s\n", strings.Join(values, "\n"))
	}
}

// callsites returns the values of call sites in the trace: functions, and lines with files.
func (x *exporter) callsites(ctx context.Context, from writer.Opened) (functions, lines []string, err error) {
	err = from.ReadTable(ctx, &schema.CallsitesTable, batch, func(b schema.Batch) error {
		t := b.(*schema.Callsites)
		for i, id := range t.ID {
			if !x.sites[id] {
				continue
			}
			function, line := "unknown", "unknown"
			if t.Module[i] != schema.NullText {
				function = fmt.Sprintf("%s+%#x", t.Module[i], t.Offset[i])
			}
			if t.Function[i] != schema.NullText {
				function = t.Function[i]
			}
			if t.File[i] != schema.NullText && t.Line[i] != null32 {
				line = fmt.Sprintf("%d (%s)", t.Line[i], t.File[i])
			}
			functions = append(functions, fmt.Sprintf("%d   %s", id+1, oneLine(function)))
			lines = append(lines, fmt.Sprintf("%d   %s", id+1, oneLine(line)))
		}
		return nil
	})
	return functions, lines, err
}

// oneLine removes line breaks from a text.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, s)
}

// rowNames writes the names of the rows that Paraver shows.
func (x *exporter) rowNames(to io.Writer) error {
	w := bufio.NewWriter(to)
	var cpus, threads []string
	for i := range x.ranks {
		for t := range x.ranks[i].threads {
			cpus = append(cpus, fmt.Sprintf("%d.%s", x.ranks[i].firstCPU+t, x.host(x.ranks[i].host)))
			threads = append(threads, fmt.Sprintf("THREAD 1.%d.%d", i+1, t+1))
		}
	}
	var nodes []string
	for i := range x.cpus() {
		nodes = append(nodes, x.host(int32(i)))
	}
	for _, level := range []struct {
		name string
		rows []string
	}{{"CPU", cpus}, {"NODE", nodes}, {"THREAD", threads}} {
		fmt.Fprintf(w, "LEVEL %s SIZE %d\n%s\n\n", level.name, len(level.rows), strings.Join(level.rows, "\n"))
	}
	return w.Flush()
}

// host returns the name of a machine.
func (x *exporter) host(i int32) string {
	if int(i) < len(x.m.Origin.Hosts) {
		return oneLine(x.m.Origin.Hosts[i])
	}
	return fmt.Sprintf("node%d", i+1)
}
