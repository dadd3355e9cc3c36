package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"github.com/commq/commq/formats/chakra"
	"github.com/commq/commq/formats/dimemas"
	"github.com/commq/commq/formats/dumpi"
	"github.com/commq/commq/formats/exectrace"
	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/inspector"
	"github.com/commq/commq/formats/kineto"
	"github.com/commq/commq/formats/liballprof"
	"github.com/commq/commq/formats/nsys"
	"github.com/commq/commq/formats/otf2"
	"github.com/commq/commq/formats/paraver"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/formats/tit"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// importer imports the trace at a path as the run of this name in a store.
type importer func(ctx context.Context, path, store, name string, o importing.Options) (*schema.Manifest, error)

// importFormat is a format that commq import reads, and the command for it.
type importFormat struct {
	name, doc            string
	short, long, example string
	arg                  string // what the argument is, for errors
	unnamed              string // what the run is called without --name
	unit                 string // of progress

	is               func(head []byte) bool
	isFile, isFolder func(path string) bool // other files and folders that stand for a trace; nil: there are none

	// One of the two reads a trace. flags adds the flags that the format has, and returns what reads with them.
	read  importer
	flags func(c *cobra.Command) importer
}

// reads reports whether a folder, or a file that begins with head, is a trace in the format.
func (f *importFormat) reads(path string, isFolder bool, head []byte) bool {
	if isFolder {
		return f.isFolder != nil && f.isFolder(path)
	}
	return f.is(head) || f.isFile != nil && f.isFile(path)
}

// reader returns what reads a trace, with the flags of c.
func (f *importFormat) reader(c *cobra.Command) importer {
	if f.flags != nil {
		return f.flags(c)
	}
	return f.read
}

// importFormats are the formats that commq import reads, in the order in which it tries them.
var importFormats = []importFormat{
	{
		name:  "dim",
		doc:   "traces of Dimemas (.dim): no times, docs/method/dimemas-files.md",
		short: "Make a run from a trace of Dimemas (.dim)",
		long: `dim reads a trace of Dimemas: what each task computes, sends, receives and does in collectives. The
run is untimed: its rows have compute times but no start and end; commq simulate gives it the times of a machine.
docs/method/dimemas-files.md describes every record.`,
		example: `  commq import dim trace.dim --name stencil.16
  commq import dim bt.dim --name bt.C.64 --events`,
		arg:     "the file of the trace",
		unnamed: "the file's name without .dim",
		is:      dimemas.IsTrace,
		flags:   dimFlags,
	},
	{
		name:  "otf2",
		doc:   "traces of Score-P, EZTrace and others (.otf2, a folder with one): docs/reference/otf2.md",
		short: "Make a run from a trace of Score-P, EZTrace or another tool (.otf2, a folder with one)",
		long: `otf2 reads an archive of the Open Trace Format 2 by its anchor file (.otf2), or by the folder with that.
Calls of MPI become rows, with the regions around them as call sites; times are on the trace's clock, with its clock
offsets applied. OTF2 has no payload hashes and datatypes. docs/reference/otf2.md describes every record.`,
		example: `  commq import otf2 scorep-run/traces.otf2 --name stencil.64
  commq import otf2 scorep-run --name stencil.64`,
		arg:      "the anchor file of the trace, for example traces.otf2, or its folder",
		unnamed:  "that of the folder, or of the file if it is not traces.otf2, without .otf2",
		unit:     "events",
		is:       otf2.IsAnchor,
		isFolder: otf2.IsFolder,
		read:     ofCalls(otf2.ImportFile),
	},
	{
		name:  "prv",
		doc:   "traces of Extrae, for Paraver (.prv, .prv.gz): docs/method/paraver.md",
		short: "Make a run from a trace of Extrae, for Paraver (.prv)",
		long: `prv reads the records that Extrae's mpi2prv, Dimemas and commq export write for Paraver, also compressed with gzip.
Calls of MPI become rows, communications messages with the partners, tags and sizes that they name, callers call sites. The
files .pcf and .row beside the trace have the names. Paraver does not tell the communicators of messages.
docs/method/paraver.md has the rules.`,
		example: `  commq import prv stencil.64.prv
  commq import prv trace.prv.gz --name stencil.64`,
		arg:     "the .prv of a trace",
		unnamed: "the file's name without .prv",
		unit:    "bytes",
		is:      paraver.IsTrace,
		read:    ofCalls(paraver.ImportFile),
	},
	{
		name:  "dumpi",
		doc:   "traces of SST's DUMPI (.meta, a folder with one): docs/reference/call-traces.md",
		short: "Make a run from a trace of SST's DUMPI (.meta, a folder with one)",
		long: `dumpi reads what libdumpi writes: a file .meta, and a binary file for each rank beside it. Calls become rows with
their times, messages with the sizes that arrived, and communicators with the members that their constructors say. DUMPI
has no clock offsets, call sites and payload hashes. docs/reference/call-traces.md has the rules.`,
		example: `  commq import dumpi dumpi-2019.05.22.meta --name amg.216
  commq import dumpi traces/ --name amg.216`,
		arg:      "the .meta of a trace, or the folder of one",
		unnamed:  "that of the .meta",
		unit:     "bytes",
		is:       dumpi.IsTrace,
		isFolder: dumpi.IsFolder,
		read:     ofCalls(dumpi.ImportPath),
	},
	{
		name:  "liballprof",
		doc:   "traces of liballprof (.txt, a folder of them): docs/reference/call-traces.md",
		short: "Make a run from a trace of liballprof (.txt, a folder of them)",
		long: `liballprof reads the traces that Schedgen makes schedules of: a text for each rank, all in one folder. Calls become
rows with their times on the clock of rank 0, by the offsets in the files. liballprof has no statuses: what MPI_ANY_SOURCE
received and what MPI_Test completed is not known. docs/reference/call-traces.md has the rules.`,
		example: `  commq import liballprof sweep3d-2x2/ --name sweep3d.4
  commq import liballprof pmpi-trace-rank-0.txt --name sweep3d.4`,
		arg:      "the file of a rank, or the folder of all",
		unnamed:  "that of the files or the folder",
		unit:     "bytes",
		is:       liballprof.IsTrace,
		isFolder: liballprof.IsFolder,
		read:     ofCalls(liballprof.ImportPath),
	},
	{
		name:  "inspector",
		doc:   "logs of NVIDIA's NCCL Inspector (.log, a folder of them): docs/reference/training.md",
		short: "Make a run from logs of NVIDIA's NCCL Inspector (.log, a folder of them)",
		long: `inspector reads what NCCL's profiler plugin inspector writes in JSON (also compressed with gzip): a file for each process,
all in one folder. Communicators of NCCL become communicators, collectives and messages rows with their sizes. Verbose logs
(NCCL_INSPECTOR_DUMP_VERBOSE=1) tell when operations ran. Of others the durations are known: they are placed as late as the
times of the dumps allow, and the run counts as simulated. docs/reference/training.md has the rules.`,
		example: `  commq import inspector nccl-inspector-4711/ --name gpt.64
  commq import inspector node3-pid812.log --name allreduce.8`,
		arg:      "the log of a process, or the folder of a job's logs",
		unnamed:  "that of the file or folder",
		unit:     "files",
		is:       inspector.IsTrace,
		isFolder: inspector.IsFolder,
		read:     inspector.ImportPath,
	},
	{
		name:  "kineto",
		doc:   "traces of PyTorch's profiler (.json, a folder of them): docs/reference/training.md",
		short: "Make a run from traces of PyTorch's profiler (.json, a folder of them)",
		long: `kineto reads what PyTorch's profiler writes (export_chrome_trace, tensorboard_trace_handler; also
compressed with gzip): a file for each rank, all in one folder. Process groups become communicators with their names, collectives and
messages rows with their sizes, streams threads. Clocks are set by matched collectives. Dumps of the flight recorder in
the same folder add the groups that Gloo's traces lack, execution traces add sizes, roots and splits. docs/reference/training.md has the rules.`,
		example: `  commq import kineto profile/ --name gpt.8
  commq import kineto rank-0.json.gz --name resnet.rank0`,
		arg:      "a trace, or the folder of a job's traces",
		unnamed:  "that of the file or folder",
		unit:     "files",
		is:       kineto.IsTrace,
		isFolder: kineto.IsFolder,
		read:     kineto.ImportPath,
	},
	{
		name:  "exectrace",
		doc:   "execution traces of PyTorch (.json, a folder of them): docs/reference/training.md",
		short: "Make a run from execution traces of PyTorch (.json, a folder of them)",
		long: `exectrace reads what torch.profiler.ExecutionTraceObserver writes (JSON, also compressed with gzip): a file for each
rank, all in one folder. Operations between processes become rows with their groups, sizes, types and roots, in the order in
which the program asked for them. The run is untimed; traces of the profiler in the same folder, and import kineto, give it
times. docs/reference/training.md has the rules.`,
		example: `  commq import exectrace dlrm_et/ --name dlrm.8
  commq import exectrace resnet_2gpu_et.json.gz --name resnet.rank1`,
		arg:      "a trace, or the folder of a job's traces",
		unnamed:  "that of the file or folder",
		unit:     "files",
		is:       exectrace.IsTrace,
		isFolder: exectrace.IsFolder,
		read:     exectrace.ImportPath,
	},
	{
		name:  "nsys",
		doc:   "exports of NVIDIA's Nsight Systems (.sqlite, a folder of them): docs/reference/nsight-systems.md",
		short: "Make a run from exports of NVIDIA's Nsight Systems (.sqlite, a folder of them)",
		long: `nsys reads the SQLite databases that nsys export --type sqlite makes of reports (.nsys-rep): one for all
processes, or a folder with one for each rank or host. Operations of NCCL become rows with the times of their kernels, a
rank for each GPU of a process; PyTorch's ranges name them, payloads of NCCL's ranges (--include-blobs=true) add sizes,
communicators, roots and partners. If there are more calls of MPI (--trace=mpi), these become rows.
docs/reference/nsight-systems.md has the rules.`,
		example: `  commq import nsys report1.sqlite --name gpt.8
  commq import nsys reports/ --name gpt.64`,
		arg:      "an export, or the folder of a job's exports",
		unnamed:  "that of the file or folder",
		unit:     "files",
		is:       nsys.IsTrace,
		isFolder: nsys.IsFolder,
		read:     nsys.ImportPath,
	},
	{
		name: "tit",
		doc: "time-independent traces of SimGrid, the list of their files, a folder of commq export tit: " +
			"docs/reference/simulators.md",
		short: "Make a run from a time-independent trace of SimGrid",
		long: `tit reads a trace that smpirun -trace-ti writes and smpirun -replay plays: a file with the actions of all
ranks, the list of the files of each rank, or the folder that commq export tit makes. The run is untimed: its rows have
compute times but no start and end; commq simulate gives it the times of a machine. docs/reference/simulators.md
describes every action.`,
		example: `  commq import tit smpi_simgrid.txt --name ring.16
  commq import tit smpi_simgrid.txt --flops-per-second 3e9 --name ring.16`,
		arg:      "the trace, the list of its files, or a folder of commq export tit",
		unnamed:  "that of the file without .txt, or of the folder of a list without .tit",
		unit:     "rows",
		is:       tit.IsTrace,
		isFile:   tit.IsList,
		isFolder: tit.IsFolder,
		flags:    titFlags,
	},
	{
		name:  "chakra",
		doc:   "Chakra execution traces (.et, a folder of them): docs/reference/training.md",
		short: "Make a run from Chakra execution traces (.et, a folder of them)",
		long: `chakra reads the execution traces of MLCommons' Chakra (protocol buffers): a file for each rank, NAME.RANK.et, all in
one folder. Collectives, sends and receives become rows in an order that the dependencies of the nodes allow; process groups
become communicators. The run is untimed. docs/reference/training.md has the rules.`,
		example: `  commq import chakra traces/ --name gpt.8
  commq import chakra chakra.0.et --name resnet.rank0`,
		arg:      "a trace, or the folder of a job's traces",
		unnamed:  "that of the file or folder",
		unit:     "files",
		is:       chakra.IsTrace,
		isFolder: chakra.IsFolder,
		read: func(ctx context.Context, path, store, name string, o importing.Options) (*schema.Manifest, error) {
			return chakra.ImportPath(ctx, path, store, name, chakra.Options{Options: o})
		},
	},
}

// ofCalls is for formats that formats/timed makes runs of.
func ofCalls(read func(ctx context.Context, path, store, name string, o timed.Options) (*schema.Manifest, error)) importer {
	return func(ctx context.Context, path, store, name string, o importing.Options) (*schema.Manifest, error) {
		return read(ctx, path, store, name, timed.Options{Options: o})
	}
}

func dimFlags(c *cobra.Command) importer {
	events := c.Flags().Bool("events", false, "make each event of the trace a row, commq_mark with the label "+
		"TYPE:VALUE, instead of only counting it")
	return func(ctx context.Context, path, store, name string, o importing.Options) (*schema.Manifest, error) {
		return dimemas.ImportFile(ctx, path, store, name, dimemas.Options{Options: o, Events: *events})
	}
}

func titFlags(c *cobra.Command) importer {
	flops := c.Flags().Float64("flops-per-second", 1e9, "speed of the machine that the operations of the "+
		"trace become times on")
	completeNothing(c, "flops-per-second")
	beforeRun(c, func([]string) error {
		if !(*flops > 0) || math.IsInf(*flops, 0) {
			return fmt.Errorf("--flops-per-second %g: want a speed above 0", *flops)
		}
		return nil
	})
	return func(ctx context.Context, path, store, name string, o importing.Options) (*schema.Manifest, error) {
		return tit.ImportFile(ctx, path, store, name, tit.Options{Options: o, FlopsPerSecond: *flops})
	}
}

type importOptions struct {
	name string // --name
	list bool   // --list
}

func newImportCommand(a *app) *cobra.Command {
	var o importOptions
	c := &cobra.Command{
		Use:   "import [flags] FILE",
		Short: "Make a run from another tool's trace",
		Long: `import reads a trace of another tool and writes it as a run, for all commands that take a run. It finds
the format by the content of the file, or of the files in a folder; the commands below are for one format, and have its
options.`,
		Example: `  commq import traces.otf2 --name stencil.64
  commq import profile/ --name gpt.8
  commq import dim trace.dim --name stencil.16
  commq import --list`,
		Args:              wantTrace,
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case o.list:
				return listImports(a.out())
			case len(args) == 0:
				return c.Help()
			}
			return runImport(c.Context(), a, &o, args[0])
		},
	}
	c.Flags().StringVar(&o.name, "name", "", "`NAME` of the run to write (default: the file's name without its ending)")
	c.Flags().BoolVar(&o.list, "list", false, "list the formats that import reads")
	a.writes(c)
	completeNothing(c, "name")
	for _, name := range []string{"dim", "otf2", "kineto", "tit", "chakra", "prv", "dumpi", "liballprof", "inspector",
		"exectrace", "nsys"} {
		i := slices.IndexFunc(importFormats, func(f importFormat) bool { return f.name == name })
		c.AddCommand(newImportFormatCommand(a, importFormats[i]))
	}
	return c
}

// wantTrace lets import have one argument: a file. Of two, the first was meant as a format.
func wantTrace(c *cobra.Command, args []string) error {
	if len(args) < 2 {
		return nil
	}
	var names []string
	for _, f := range importFormats {
		names = append(names, f.name)
	}
	return fmt.Errorf("%sunknown format %q; want %s, or a file alone", placeOf(c), args[0], strings.Join(names, ", "))
}

func listImports(w io.Writer) error {
	for _, f := range importFormats {
		if _, err := fmt.Fprintf(w, "%-10s %s\n", f.name, f.doc); err != nil {
			return err
		}
	}
	return nil
}

// runImport imports a trace in the format that its content shows.
func runImport(ctx context.Context, a *app, o *importOptions, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	var head []byte
	if !info.IsDir() {
		if head, err = headOf(path); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	var names []string
	for _, f := range importFormats {
		if f.reads(path, info.IsDir(), head) {
			return importWith(ctx, a, f, f.reader(&cobra.Command{}), path, o.name)
		}
		names = append(names, f.name)
	}
	formats := strings.Join(names, ", ")
	if info.IsDir() {
		return notATrace(path, formats)
	}
	return fmt.Errorf("import: %s begins with %q; want a file in a format that import reads: %s", path,
		head[:min(len(head), 16)], formats)
}

// notATrace refuses a folder that is in none of the formats.
func notATrace(path, formats string) error {
	if _, err := writer.ReadManifest(path); err == nil {
		return fmt.Errorf("import: %s is a run already, not a trace; its path stands for it wherever a command "+
			"takes a run, as in commq doctor %s", path, shellquote.Join(path))
	}
	return fmt.Errorf("import: %s is a folder without traces that import reads there; want a file, or a folder of "+
		"traces of PyTorch's profiler, execution traces of PyTorch, NCCL Inspector, Nsight Systems, Chakra, OTF2, "+
		"DUMPI, liballprof or commq export tit (formats: %s)", path, formats)
}

// headOf returns the first bytes of a file, of what is in it if it is compressed with gzip.
func headOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := bufio.NewReader(f)
	var r io.Reader = b
	if magic, err := b.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		if r, err = gzip.NewReader(b); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	head := make([]byte, 4096)
	n, err := io.ReadFull(r, head)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return head[:n], err
}

// newImportFormatCommand returns the command for traces of one format.
func newImportFormatCommand(a *app, f importFormat) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:               f.name + " [flags] FILE",
		Short:             f.short,
		Long:              f.long,
		Example:           f.example,
		Args:              wantArgs(1, 1, f.arg),
		ValidArgsFunction: oneFile,
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the run to write (default: "+f.unnamed+")")
	completeNothing(c, "name")
	read := f.reader(c)
	a.writes(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return importWith(c.Context(), a, f, read, args[0], name)
	}
	return c
}

// importWith imports a trace with what reads its format.
func importWith(ctx context.Context, a *app, f importFormat, read importer, path, name string) error {
	update, finish := newProgress(a, "import "+f.name, f.unit)
	m, err := read(ctx, path, a.storeDir(), name, importing.Options{Origin: schema.Origin{Commq: version},
		Replace: a.replace, Progress: locked(update)})
	finish()
	if err != nil {
		return fmt.Errorf("import %s: %w", f.name, err)
	}
	printSummary(a.summaries(), m)
	return nil
}

// locked lets several goroutines call an update of progress.
func locked(update func(done, all int64)) func(done, all int64) {
	var lock sync.Mutex
	return func(done, all int64) {
		lock.Lock()
		defer lock.Unlock()
		update(done, all)
	}
}
