package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"github.com/commq/commq/formats/chakra"
	"github.com/commq/commq/formats/dimemas"
	"github.com/commq/commq/formats/dumpi"
	"github.com/commq/commq/formats/exectrace"
	"github.com/commq/commq/formats/inspector"
	"github.com/commq/commq/formats/kineto"
	"github.com/commq/commq/formats/liballprof"
	"github.com/commq/commq/formats/nsys"
	"github.com/commq/commq/formats/otf2"
	"github.com/commq/commq/formats/paraver"
	"github.com/commq/commq/formats/tit"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// importFormat is a format that commq import reads.
type importFormat struct {
	name, doc string
	is        func(head []byte) bool
	isPath    func(path string) bool // a folder or file that stands for a trace's files; nil: a trace is a file
	read      func(ctx context.Context, a *app, path, name string) error
}

var (
	runImportKineto    = importTraining("kineto", kineto.ImportPath)
	runImportInspector = importTraining("inspector", inspector.ImportPath)
	runImportExectrace = importTraining("exectrace", exectrace.ImportPath)
	runImportNsys      = importTraining("nsys", nsys.ImportPath)
)

var importFormats = []importFormat{
	{"dim", "traces of Dimemas (.dim): no times, docs/method/dimemas-files.md", dimemas.IsTrace, nil,
		func(ctx context.Context, a *app, path, name string) error {
			return runImportDim(ctx, a, &importDimOptions{name: name}, path)
		}},
	{"otf2", "traces of Score-P, EZTrace and others (.otf2, a folder with one): docs/reference/otf2.md", otf2.IsAnchor,
		func(path string) bool { return isDir(path) && otf2.IsFolder(path) }, runImportOTF2},
	{"prv", "traces of Extrae, for Paraver (.prv, .prv.gz): docs/method/paraver.md", paraver.IsTrace, nil, runImportPrv},
	{"dumpi", "traces of SST's DUMPI (.meta, a folder with one): docs/reference/call-traces.md", dumpi.IsTrace,
		func(path string) bool { return isDir(path) && dumpi.IsFolder(path) }, runImportDUMPI},
	{"liballprof", "traces of liballprof (.txt, a folder of them): docs/reference/call-traces.md", liballprof.IsTrace,
		func(path string) bool { return isDir(path) && liballprof.IsFolder(path) }, runImportLiballprof},
	{"inspector", "logs of NVIDIA's NCCL Inspector (.log, a folder of them): docs/reference/training.md", inspector.IsTrace,
		func(path string) bool { return isDir(path) && inspector.IsFolder(path) }, runImportInspector},
	{"kineto", "traces of PyTorch's profiler (.json, a folder of them): docs/reference/training.md", kineto.IsTrace,
		func(path string) bool { return isDir(path) && kineto.IsFolder(path) }, runImportKineto},
	{"exectrace", "execution traces of PyTorch (.json, a folder of them): docs/reference/training.md", exectrace.IsTrace,
		func(path string) bool { return isDir(path) && exectrace.IsFolder(path) }, runImportExectrace},
	{"nsys", "exports of NVIDIA's Nsight Systems (.sqlite, a folder of them): docs/reference/nsight-systems.md",
		nsys.IsTrace, func(path string) bool { return isDir(path) && nsys.IsFolder(path) }, runImportNsys},
	{"tit", "time-independent traces of SimGrid, the list of their files, a folder of commq export tit: " +
		"docs/reference/simulators.md", tit.IsTrace,
		func(path string) bool { return !isDir(path) && tit.IsList(path) || isDir(path) && tit.IsFolder(path) },
		func(ctx context.Context, a *app, path, name string) error {
			return runImportTIT(ctx, a, &importTITOptions{name: name, flopsPerSecond: 1e9}, path)
		}},
	{"chakra", "Chakra execution traces (.et, a folder of them): docs/reference/training.md", chakra.IsTrace,
		func(path string) bool { return isDir(path) && chakra.IsFolder(path) }, runImportChakra},
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
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
				return listImports(a.screen())
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
	c.AddCommand(newImportDimCommand(a), newImportOTF2Command(a), newImportKinetoCommand(a),
		newImportTITCommand(a), newImportChakraCommand(a), newImportPrvCommand(a), newImportDUMPICommand(a),
		newImportLiballprofCommand(a), newImportInspectorCommand(a), newImportExectraceCommand(a),
		newImportNsysCommand(a))
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
		if !info.IsDir() && f.is(head) || f.isPath != nil && f.isPath(path) {
			return f.read(ctx, a, path, o.name)
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

func newImportKinetoCommand(a *app) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "kineto [flags] FILE",
		Short: "Make a run from traces of PyTorch's profiler (.json, a folder of them)",
		Long: `kineto reads what PyTorch's profiler writes (export_chrome_trace, tensorboard_trace_handler; also
compressed with gzip): a file for each rank, all in one folder. Process groups become communicators with their names, collectives and
messages rows with their sizes, streams threads. Clocks are set by matched collectives. Dumps of the flight recorder in
the same folder add the groups that Gloo's traces lack, execution traces add sizes, roots and splits. docs/reference/training.md has the rules.`,
		Example: `  commq import kineto profile/ --name gpt.8
  commq import kineto rank-0.json.gz --name resnet.rank0`,
		Args:              wantArgs(1, 1, "a trace, or the folder of a job's traces"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return runImportKineto(c.Context(), a, args[0], name)
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the run to write (default: that of the file or folder)")
	a.writes(c)
	completeNothing(c, "name")
	return c
}

// importTraining returns what imports traces of machine learning with the function of a format.
func importTraining(format string, importPath func(ctx context.Context, path, store, name string,
	o training.Importing) (*schema.Manifest, error)) func(ctx context.Context, a *app, path, name string) error {
	return func(ctx context.Context, a *app, path, name string) error {
		update, finish := newProgress(a, "import "+format, "files")
		m, err := importPath(ctx, path, a.storeDir(), name, training.Importing{Replace: a.replace,
			Origin: schema.Origin{Commq: version}, Progress: update})
		finish()
		if err != nil {
			return fmt.Errorf("import %s: %w", format, err)
		}
		printSummary(a.summaries(), m)
		return nil
	}
}

func newImportInspectorCommand(a *app) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "inspector [flags] FILE",
		Short: "Make a run from logs of NVIDIA's NCCL Inspector (.log, a folder of them)",
		Long: `inspector reads what NCCL's profiler plugin inspector writes in JSON (also compressed with gzip): a file for each process,
all in one folder. Communicators of NCCL become communicators, collectives and messages rows with their sizes. Verbose logs
(NCCL_INSPECTOR_DUMP_VERBOSE=1) tell when operations ran. Of others the durations are known: they are placed as late as the
times of the dumps allow, and the run counts as simulated. docs/reference/training.md has the rules.`,
		Example: `  commq import inspector nccl-inspector-4711/ --name gpt.64
  commq import inspector node3-pid812.log --name allreduce.8`,
		Args:              wantArgs(1, 1, "the log of a process, or the folder of a job's logs"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return runImportInspector(c.Context(), a, args[0], name)
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the run to write (default: that of the file or folder)")
	a.writes(c)
	completeNothing(c, "name")
	return c
}

func newImportExectraceCommand(a *app) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "exectrace [flags] FILE",
		Short: "Make a run from execution traces of PyTorch (.json, a folder of them)",
		Long: `exectrace reads what torch.profiler.ExecutionTraceObserver writes (JSON, also compressed with gzip): a file for each
rank, all in one folder. Operations between processes become rows with their groups, sizes, types and roots, in the order in
which the program asked for them. The run is untimed; traces of the profiler in the same folder, and import kineto, give it
times. docs/reference/training.md has the rules.`,
		Example: `  commq import exectrace dlrm_et/ --name dlrm.8
  commq import exectrace resnet_2gpu_et.json.gz --name resnet.rank1`,
		Args:              wantArgs(1, 1, "a trace, or the folder of a job's traces"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return runImportExectrace(c.Context(), a, args[0], name)
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the run to write (default: that of the file or folder)")
	a.writes(c)
	completeNothing(c, "name")
	return c
}

func newImportNsysCommand(a *app) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "nsys [flags] FILE",
		Short: "Make a run from exports of NVIDIA's Nsight Systems (.sqlite, a folder of them)",
		Long: `nsys reads the SQLite databases that nsys export --type sqlite makes of reports (.nsys-rep): one for all
processes, or a folder with one for each rank or host. Operations of NCCL become rows with the times of their kernels, a
rank for each GPU of a process; PyTorch's ranges name them, payloads of NCCL's ranges (--include-blobs=true) add sizes,
communicators, roots and partners. If there are more calls of MPI (--trace=mpi), these become rows.
docs/reference/nsight-systems.md has the rules.`,
		Example: `  commq import nsys report1.sqlite --name gpt.8
  commq import nsys reports/ --name gpt.64`,
		Args:              wantArgs(1, 1, "an export, or the folder of a job's exports"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return runImportNsys(c.Context(), a, args[0], name)
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the run to write (default: that of the file or folder)")
	a.writes(c)
	completeNothing(c, "name")
	return c
}

func newImportOTF2Command(a *app) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "otf2 [flags] FILE",
		Short: "Make a run from a trace of Score-P, EZTrace or another tool (.otf2, a folder with one)",
		Long: `otf2 reads an archive of the Open Trace Format 2 by its anchor file (.otf2), or by the folder with that.
Calls of MPI become rows, with the regions around them as call sites; times are on the trace's clock, with its clock
offsets applied. OTF2 has no payload hashes and datatypes. docs/reference/otf2.md describes every record.`,
		Example: `  commq import otf2 scorep-run/traces.otf2 --name stencil.64
  commq import otf2 scorep-run --name stencil.64`,
		Args:              wantArgs(1, 1, "the anchor file of the trace, for example traces.otf2, or its folder"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return runImportOTF2(c.Context(), a, args[0], name)
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the run to write (default: that of the folder, or of the "+
		"file if it is not traces.otf2, without .otf2)")
	a.writes(c)
	completeNothing(c, "name")
	return c
}

func runImportOTF2(ctx context.Context, a *app, path, name string) error {
	update, finish := newProgress(a, "import otf2", "events")
	m, err := otf2.ImportFile(ctx, path, a.storeDir(), name, otf2.Options{Replace: a.replace,
		Origin: schema.Origin{Commq: version}, Progress: locked(update)})
	finish()
	if err != nil {
		return fmt.Errorf("import otf2: %w", err)
	}
	printSummary(a.summaries(), m)
	return nil
}

func newImportPrvCommand(a *app) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "prv [flags] FILE",
		Short: "Make a run from a trace of Extrae, for Paraver (.prv)",
		Long: `prv reads the records that Extrae's mpi2prv, Dimemas and commq export write for Paraver, also compressed with gzip.
Calls of MPI become rows, communications messages with the partners, tags and sizes that they name, callers call sites. The
files .pcf and .row beside the trace have the names. Paraver does not tell the communicators of messages.
docs/method/paraver.md has the rules.`,
		Example: `  commq import prv stencil.64.prv
  commq import prv trace.prv.gz --name stencil.64`,
		Args:              wantArgs(1, 1, "the .prv of a trace"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return runImportPrv(c.Context(), a, args[0], name)
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the run to write (default: the file's name without .prv)")
	a.writes(c)
	completeNothing(c, "name")
	return c
}

func runImportPrv(ctx context.Context, a *app, path, name string) error {
	update, finish := newProgress(a, "import prv", "bytes")
	m, err := paraver.ImportFile(ctx, path, a.storeDir(), name, paraver.Options{Replace: a.replace,
		Origin: schema.Origin{Commq: version}, Progress: locked(update)})
	finish()
	if err != nil {
		return fmt.Errorf("import prv: %w", err)
	}
	printSummary(a.summaries(), m)
	return nil
}

func newImportDUMPICommand(a *app) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "dumpi [flags] FILE",
		Short: "Make a run from a trace of SST's DUMPI (.meta, a folder with one)",
		Long: `dumpi reads what libdumpi writes: a file .meta, and a binary file for each rank beside it. Calls become rows with
their times, messages with the sizes that arrived, and communicators with the members that their constructors say. DUMPI
has no clock offsets, call sites and payload hashes. docs/reference/call-traces.md has the rules.`,
		Example: `  commq import dumpi dumpi-2019.05.22.meta --name amg.216
  commq import dumpi traces/ --name amg.216`,
		Args:              wantArgs(1, 1, "the .meta of a trace, or the folder of one"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return runImportDUMPI(c.Context(), a, args[0], name)
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the run to write (default: that of the .meta)")
	a.writes(c)
	completeNothing(c, "name")
	return c
}

func runImportDUMPI(ctx context.Context, a *app, path, name string) error {
	update, finish := newProgress(a, "import dumpi", "bytes")
	m, err := dumpi.ImportPath(ctx, path, a.storeDir(), name, dumpi.Options{Replace: a.replace,
		Origin: schema.Origin{Commq: version}, Progress: locked(update)})
	finish()
	if err != nil {
		return fmt.Errorf("import dumpi: %w", err)
	}
	printSummary(a.summaries(), m)
	return nil
}

func newImportLiballprofCommand(a *app) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "liballprof [flags] FILE",
		Short: "Make a run from a trace of liballprof (.txt, a folder of them)",
		Long: `liballprof reads the traces that Schedgen makes schedules of: a text for each rank, all in one folder. Calls become
rows with their times on the clock of rank 0, by the offsets in the files. liballprof has no statuses: what MPI_ANY_SOURCE
received and what MPI_Test completed is not known. docs/reference/call-traces.md has the rules.`,
		Example: `  commq import liballprof sweep3d-2x2/ --name sweep3d.4
  commq import liballprof pmpi-trace-rank-0.txt --name sweep3d.4`,
		Args:              wantArgs(1, 1, "the file of a rank, or the folder of all"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return runImportLiballprof(c.Context(), a, args[0], name)
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the run to write (default: that of the files or the folder)")
	a.writes(c)
	completeNothing(c, "name")
	return c
}

func runImportLiballprof(ctx context.Context, a *app, path, name string) error {
	update, finish := newProgress(a, "import liballprof", "bytes")
	m, err := liballprof.ImportPath(ctx, path, a.storeDir(), name, liballprof.Options{Replace: a.replace,
		Origin: schema.Origin{Commq: version}, Progress: locked(update)})
	finish()
	if err != nil {
		return fmt.Errorf("import liballprof: %w", err)
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

type importDimOptions struct {
	name   string // --name
	events bool   // --events
}

func newImportDimCommand(a *app) *cobra.Command {
	var o importDimOptions
	c := &cobra.Command{
		Use:   "dim [flags] FILE",
		Short: "Make a run from a trace of Dimemas (.dim)",
		Long: `dim reads a trace of Dimemas: what each task computes, sends, receives and does in collectives. The
run is untimed: its rows have compute times but no start and end; commq simulate gives it the times of a machine.
docs/method/dimemas-files.md describes every record.`,
		Example: `  commq import dim trace.dim --name stencil.16
  commq import dim bt.dim --name bt.C.64 --events`,
		Args:              wantArgs(1, 1, "the file of the trace"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return runImportDim(c.Context(), a, &o, args[0])
		},
	}
	f := c.Flags()
	f.StringVar(&o.name, "name", "", "`NAME` of the run to write (default: the file's name without .dim)")
	f.BoolVar(&o.events, "events", false, "make each event of the trace a row, commq_mark with the label "+
		"TYPE:VALUE, instead of only counting it")
	a.writes(c)
	completeNothing(c, "name")
	return c
}

func runImportDim(ctx context.Context, a *app, o *importDimOptions, path string) error {
	m, err := dimemas.ImportFile(ctx, path, a.storeDir(), o.name,
		dimemas.Options{Events: o.events, Replace: a.replace, Origin: schema.Origin{Commq: version}})
	if err != nil {
		return fmt.Errorf("import dim: %w", err)
	}
	printSummary(a.summaries(), m)
	return nil
}

type importTITOptions struct {
	name           string  // --name
	flopsPerSecond float64 // --flops-per-second
}

func newImportTITCommand(a *app) *cobra.Command {
	var o importTITOptions
	c := &cobra.Command{
		Use:   "tit [flags] FILE",
		Short: "Make a run from a time-independent trace of SimGrid",
		Long: `tit reads a trace that smpirun -trace-ti writes and smpirun -replay plays: a file with the actions of all
ranks, the list of the files of each rank, or the folder that commq export tit makes. The run is untimed: its rows have
compute times but no start and end; commq simulate gives it the times of a machine. docs/reference/simulators.md
describes every action.`,
		Example: `  commq import tit smpi_simgrid.txt --name ring.16
  commq import tit smpi_simgrid.txt --flops-per-second 3e9 --name ring.16`,
		Args:              wantArgs(1, 1, "the trace, the list of its files, or a folder of commq export tit"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return runImportTIT(c.Context(), a, &o, args[0])
		},
	}
	c.Flags().StringVar(&o.name, "name", "", "`NAME` of the run to write (default: that of the file without .txt, or "+
		"of the folder of a list without .tit)")
	c.Flags().Float64Var(&o.flopsPerSecond, "flops-per-second", 1e9, "speed of the machine that the operations of the "+
		"trace become times on")
	a.writes(c)
	completeNothing(c, "name", "flops-per-second")
	return c
}

func runImportTIT(ctx context.Context, a *app, o *importTITOptions, path string) error {
	if !(o.flopsPerSecond > 0) || math.IsInf(o.flopsPerSecond, 0) {
		return fmt.Errorf("--flops-per-second %g: want a speed above 0", o.flopsPerSecond)
	}
	update, finish := newProgress(a, "import tit", "rows")
	m, err := tit.ImportFile(ctx, path, a.storeDir(), o.name, tit.Options{FlopsPerSecond: o.flopsPerSecond,
		Replace: a.replace, Origin: schema.Origin{Commq: version}, Progress: update})
	finish()
	if err != nil {
		return fmt.Errorf("import tit: %w", err)
	}
	printSummary(a.summaries(), m)
	return nil
}

func newImportChakraCommand(a *app) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "chakra [flags] FILE",
		Short: "Make a run from Chakra execution traces (.et, a folder of them)",
		Long: `chakra reads the execution traces of MLCommons' Chakra (protocol buffers): a file for each rank, NAME.RANK.et, all in
one folder. Collectives, sends and receives become rows in an order that the dependencies of the nodes allow; process groups
become communicators. The run is untimed. docs/reference/training.md has the rules.`,
		Example: `  commq import chakra traces/ --name gpt.8
  commq import chakra chakra.0.et --name resnet.rank0`,
		Args:              wantArgs(1, 1, "a trace, or the folder of a job's traces"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return runImportChakra(c.Context(), a, args[0], name)
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the run to write (default: that of the file or folder)")
	a.writes(c)
	completeNothing(c, "name")
	return c
}

func runImportChakra(ctx context.Context, a *app, path, name string) error {
	update, finish := newProgress(a, "import chakra", "files")
	m, err := chakra.ImportPath(ctx, path, a.storeDir(), name, chakra.Options{Replace: a.replace,
		Origin: schema.Origin{Commq: version}, Progress: update})
	finish()
	if err != nil {
		return fmt.Errorf("import chakra: %w", err)
	}
	printSummary(a.summaries(), m)
	return nil
}
