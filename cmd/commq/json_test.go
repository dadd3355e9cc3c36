package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	checker "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/doctor"
	"github.com/commq/commq/capture/hang"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/compare"
	"github.com/commq/commq/detect/report"
	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/diagnose/growth"
	"github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/replay"
	"github.com/commq/commq/schema"
)

// jsonAnswer is what a command prints with --format json. Its schema is docs/reference/json/NAME.schema.json.
type jsonAnswer struct {
	name    string // of the schema
	command string // "runs list"
	with    string // the flag that asks for this answer, if the command has several
	about   string // what the JSON is
	typ     reflect.Type
	columns []queries.Column // of an answer in rows, which has no type
	// optional are columns that rows need not have. more allows others.
	optional []queries.Column
	more     bool
	// lines are command lines whose answers must fit the schema, with COMMQ_STORE=testdata/runs. An answer without
	// needs MPI or a running job.
	lines []string
}

func jsonType[T any]() reflect.Type { return reflect.TypeFor[T]() }

// jsonAnswers are the answers of all commands but query NAME.
var jsonAnswers = []jsonAnswer{
	{name: "capture-dry-run", command: "capture", with: "--dry-run", typ: jsonType[spool.Volume](),
		about: "How much a job would record, after what the program itself prints."},
	{name: "watch", command: "watch", typ: jsonType[watchReport](),
		about: "The state of a job: an object on a line for each report."},
	{name: "watch-hang", command: "watch", with: "--hang", typ: jsonType[hang.Report](),
		about: "What the ranks of a job are doing, and who waits for whom."},
	{name: "doctor", command: "doctor", typ: jsonType[[]doctor.Finding](),
		about: "The checks of a machine, a program or a run.",
		lines: []string{"doctor --quick", "doctor cg.A.4"}},
	{name: "query-list", command: "query", with: "--list", columns: listedQueryColumns, about: "The queries.",
		lines: []string{"query --list"}},
	{name: "sql", command: "sql", more: true, about: "The rows of your SQL, with the columns that you select.",
		lines: []string{"sql --run cg.A.4 SELECT+call,count(*)+AS+n,[1,2]+AS+l+FROM+events+GROUP+BY+call"}},
	{name: "diagnose", command: "diagnose", typ: jsonType[diagnose.Diagnosis](),
		about: "What limits a run, and what mending it gains.",
		lines: []string{"diagnose uneven.4", "diagnose mg.W.16 --machine ethernet-40g"}},
	{name: "diagnose-list", command: "diagnose", with: "--list", columns: listedRuleColumns, about: "The rules.",
		lines: []string{"diagnose --list"}},
	{name: "diagnose-several", command: "diagnose", with: "RUN RUN...", typ: jsonType[growth.Growth](),
		about: "Which findings of a program grow with the number of ranks.",
		lines: []string{"diagnose cg.A.4 cg.A.16", "diagnose cg.A.* mg.W.16 --machine ethernet-40g"}},
	{name: "critical-path", command: "critical-path", columns: pathColumns, optional: pathKeyColumns,
		about: "The critical path of a run, by the keys of --by.",
		lines: []string{"critical-path --run cg.A.4", "critical-path --run cg.A.4 --by rank"}},
	{name: "phases", command: "phases", columns: phaseColumns, about: "The phases of a run.",
		lines: []string{"phases --run cg.A.4 --all"}},
	{name: "diff", command: "diff", typ: jsonType[compare.Comparison](),
		about: "What differs between runs, measure by measure.",
		lines: []string{"diff cg.A.4 cg.A.16"}},
	{name: "diff-wire", command: "diff", with: "--wire", typ: jsonType[compare.Wire](),
		about: "What differs between two runs, message by message.",
		lines: []string{"diff --wire is.W.16 ft.W.16"}},
	{name: "check", command: "check", typ: jsonType[compare.PrintedVerdict](), about: "Which rules runs keep.",
		lines: []string{"check --rules RULES --baseline BASELINE --run cg.A.4", "check --rules RULES --baseline BASELINE --run cg.A.16"}},
	{name: "calibrate", command: "calibrate", typ: jsonType[calibrationAnswer](),
		about: "A machine, learnt from the times of a run.",
		lines: []string{"calibrate --run pingpong.2"}},
	{name: "simulate", command: "simulate", typ: jsonType[stored.Answer](), about: "The time of a run on a machine.",
		lines: []string{"simulate --run ft.W.16 --machine myrinet --critical-path", "simulate --run is.W.16 --machine myrinet --split=false"}},
	{name: "simulate-sweep", command: "simulate", with: "--sweep", columns: sweepColumns, optional: []queries.Column{runColumn}, more: true,
		about: "The time of runs on many machines: besides these columns one for each key that is swept, by its name.",
		lines: []string{"simulate --run ft.W.16 --machine myrinet --sweep latency_ns=1e3,2e3 --sweep nodes=4,16",
			"simulate --run ft.W.16 --run is.W.16 --machine myrinet --sweep latency_ns=1e3,2e3 --reference-ns 1000000"}},
	{name: "simulate-within", command: "simulate", with: "--sweep --within", columns: spanColumns,
		about: "For each key that is swept, the values with which the time of a run is near the reference.",
		lines: []string{"simulate --run ft.W.16 --machine myrinet --sweep latency_ns=1e3,1e7 --within 0.1 --reference-ns 300000000"}},
	{name: "fit", command: "fit", with: "--run", typ: jsonType[fittedRuns](),
		about: "The laws of runs over the number of ranks.",
		lines: []string{"fit --run SIGNATURES/halo.4.json.gz --run SIGNATURES/halo.6.json.gz --run SIGNATURES/halo.9.json.gz"}},
	{name: "fit-table", command: "fit", with: "--table", typ: jsonType[[]regress.Prediction](),
		about: "A law of the numbers of a table, at each number of ranks of --at.",
		lines: []string{"fit --table TABLE --at 64", "fit --table TABLE --at 64,128"}},
	{name: "predict", command: "predict", typ: jsonType[printedPrediction](),
		about: "The communication and time of a program at more ranks.",
		lines: []string{"predict --run SIGNATURES/halo.*.json.gz --ranks 49",
			"predict --run SIGNATURES/cg.W.2.json.gz --run SIGNATURES/cg.W.4.json.gz --run SIGNATURES/cg.W.8.json.gz --run SIGNATURES/cg.W.16.json.gz --holdout"}},
	{name: "detect", command: "detect", typ: jsonType[report.Report](),
		about: "Collectives that a program makes of messages by hand.",
		lines: []string{"detect --run cg.A.4", "detect --run cg.A.16 --messages", "detect --run ft.W.16 --machine myrinet"}},
	{name: "replay", command: "replay", typ: jsonType[replay.Comparison](),
		about: "Whether a replay communicated as its run did."},
	{name: "replay-phases", command: "replay", with: "--phases", typ: jsonType[replay.PhasePrediction](),
		about: "The time of a run, predicted from playing its phases."},
	{name: "runs-list", command: "runs list", typ: jsonType[[]listedRun](),
		about: "The runs of the store.", lines: []string{"runs list"}},
	{name: "runs-show", command: "runs show", typ: jsonType[schema.Manifest](),
		about: "The manifest of a run, as its file manifest.json has it.",
		lines: []string{"runs show cg.A.4", "runs show uneven.4"}},
	{name: "runs-check", command: "runs check", typ: jsonType[[]checkedRun](),
		about: "Which rules the files of runs break.",
		lines: []string{"runs check ep.W.4 ft.A.4"}},
	{name: "export-signature", command: "export signature", typ: jsonType[signature.Signature](),
		about: "The signature of a run, as -o writes it.",
		lines: []string{"export signature --run ft.W.16", "export signature --run SIGNATURES/cg.W.8.json.gz"}},
}

// queryAnswers are the answers of the queries, whose headers describe their columns.
func queryAnswers(t *testing.T) (all []jsonAnswer) {
	t.Helper()
	list, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range list {
		a := jsonAnswer{name: "query/" + q.Name, command: "query " + q.Name, about: q.Summary, columns: q.Columns}
		if !slices.ContainsFunc(q.Columns, func(c queries.Column) bool { return c.Name == "run" }) {
			a.optional = []queries.Column{{Name: "run", Type: "VARCHAR", Doc: "Name of the run, if several runs were asked."}}
		}
		all = append(all, a)
	}
	return all
}

const jsonFolder = "../../docs/reference/json"

// title is the command line of an answer.
func (a *jsonAnswer) title() string { return strings.TrimSpace("commq " + a.command + " " + a.with) }

func (a *jsonAnswer) file() string { return filepath.Join(jsonFolder, a.name+".schema.json") }

// makeSchema makes the schema of an answer.
func (a *jsonAnswer) makeSchema(t *testing.T, m *schemaMaker) *jsonschema.Schema {
	var s *jsonschema.Schema
	if a.typ != nil {
		s = m.schema(a.typ)
	} else {
		more := jsonschema.FalseSchema
		if a.more {
			more = jsonschema.TrueSchema
		}
		s = rowsSchema(append(slices.Clone(a.optional), a.columns...), more)
		row := s.Definitions["row"]
		row.Required = row.Required[len(a.optional):]
	}
	s.ID = jsonschema.ID("https://github.com/commq/commq/docs/reference/json/" + a.name + ".schema.json")
	s.Title, s.Description = a.title()+" --format json", a.about
	return s
}

// TestJSONSchemas: the schemas in docs/reference/json are those of the answers, and describe each of their keys.
func TestJSONSchemas(t *testing.T) {
	m := newSchemaMaker(t)
	want := map[string]string{filepath.Join(jsonFolder, "..", "json.md"): jsonPage(t)}
	for _, a := range append(queryAnswers(t), jsonAnswers...) {
		want[a.file()] = schemaText(t, a.makeSchema(t, m))
	}
	if *update {
		if err := os.RemoveAll(jsonFolder); err != nil {
			t.Fatal(err)
		}
		for file, text := range want {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	for file, text := range want {
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("%s is not up to date (%v); run go generate ./cmd/commq and commit it", file, err)
		}
	}
	folders, err := filepath.Glob(jsonFolder + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob(jsonFolder + "/query/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(folders, below...) {
		if want[file] == "" {
			t.Errorf("%s is the schema of no command; run go generate ./cmd/commq", file)
		}
	}
}

// goText is what a reader of JSON does not know: nil, and names of Go.
var goText = regexp.MustCompile(`\bnil\b|\b[a-z]+\.[A-Z]\w+|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w+|\b(one of )?the constants\b`)

// TestJSONDescriptions: descriptions are not about Go.
func TestJSONDescriptions(t *testing.T) {
	for _, a := range jsonAnswers {
		for _, line := range strings.Split(mustRead(t, a.file()), "\n") {
			text, is := strings.CutPrefix(strings.TrimSpace(line), `"description": `)
			if found := goText.FindString(text); is && found != "" && !strings.Contains(found, "duckdb") {
				t.Errorf("%s: %q in %s", a.name, found, text)
			}
		}
	}
}

// compiledSchema reads the schema of an answer.
func compiledSchema(t *testing.T, name string) *checker.Schema {
	t.Helper()
	s, err := checker.NewCompiler().Compile(filepath.Join(jsonFolder, name+".schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fitsSchema fails the test unless the text is JSON that fits the schema of an answer.
func fitsSchema(t *testing.T, name, text string) {
	t.Helper()
	v, err := checker.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = compiledSchema(t, name).Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, tail(text))
	}
}

// TestJSONFitsSchemas: what commands print fits their schemas, which allow no other keys.
func TestJSONFitsSchemas(t *testing.T) {
	folder := jsonInputs(t)
	for _, a := range jsonAnswers {
		for _, line := range a.lines {
			t.Run(line, func(t *testing.T) {
				args := append(strings.Fields(strings.NewReplacer("RULES", folder+"/rules.yaml", "BASELINE", folder+"/base.yaml",
					"TABLE", folder+"/table.csv", "SIGNATURES", "../../testdata/signatures").Replace(line)), "--format", "json")
				for i := range args {
					args[i] = strings.ReplaceAll(args[i], "+", " ")
				}
				status, out, errs := commandLine("", args...)
				if status != exitDone && status != exitFailed && out == "" {
					t.Fatalf("status %d: %s", status, errs)
				}
				fitsSchema(t, a.name, out)
			})
		}
	}
}

// TestJSONOfJobs: what commands print of jobs fits the schemas.
func TestJSONOfJobs(t *testing.T) {
	captureEnvironment(t)
	commq(t, "capture", "build", "--mpi", "mpich")
	exe, spool := program{name: "requests", ranks: 3}.build(t, "mpich", flavours()[0]), t.TempDir()
	dry := commq(t, "capture", "--dry-run", "--format", "json", "-q", "-n", "3", "--", exe)
	fitsSchema(t, "capture-dry-run", dry[strings.Index(dry, "{\n"):]) // the program writes before it
	job := exec.Command("mpirun.mpich", "-n", "3", "commq", "exec", "--spool", spool, "--", exe)
	if out, err := job.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fitsSchema(t, "watch", commq(t, "watch", "--once", "--format", "json", spool))
	fitsSchema(t, "watch-hang", commq(t, "watch", "--hang", "--format", "json", spool))
	fitsSchema(t, "replay", commq(t, "replay", "--store", t.TempDir(), "--run", filepath.Join(runsDir, "ep.W.4"), "-q", "--compute",
		"zero", "--mpi", "mpich", "--format", "json"))
}

// jsonInputs makes the files that the command lines of jsonAnswers read.
func jsonInputs(t *testing.T) (folder string) {
	t.Helper()
	t.Setenv("COMMQ_STORE", runsDir)
	folder = t.TempDir()
	for name, text := range map[string]string{
		"rules.yaml": "commq_check: 1\nrules:\n  - name: no more\n    no_more: [messages, pairs]\n",
		"table.csv":  "ranks,bytes\n4,100\n8,210\n16,390\n32,820\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commq(t, "check", "--write-baseline", "--run", "cg.A.4", "--baseline", filepath.Join(folder, "base.yaml"))
	return folder
}

// TestTypesFitSchemas: the JSON of a value with no field empty, and of one with all of them, fits the schema of its
// type.
func TestTypesFitSchemas(t *testing.T) {
	for _, a := range jsonAnswers {
		if a.typ == nil {
			continue
		}
		for _, depth := range []int{0, 9} {
			var b bytes.Buffer
			if err := printJSON(&b, filled(a.typ, depth).Interface()); err != nil {
				t.Errorf("%s: %v", a.name, err)
			}
			fitsSchema(t, a.name, b.String())
		}
	}
}

// TestQueryAnswersFitSchemas: what queries print fits the schemas made from their headers, on the first run that has
// what the query needs and an answer.
func TestQueryAnswersFitSchemas(t *testing.T) {
	t.Setenv("COMMQ_STORE", runsDir)
	for _, a := range queryAnswers(t) {
		t.Run(a.command, func(t *testing.T) {
			answered := false
			for _, runs := range []string{"cg.A.4", "rma.3", "bt-io.S.4", "pingpong.2", "uneven.4", "mg.W.*",
				"is.W.16 ft.W.16 --base is.W.16"} {
				status, out, _ := commandLine("", append(strings.Fields(a.command+" --format json "), strings.Fields(runs)...)...)
				if status != exitDone {
					continue
				}
				answered = true
				fitsSchema(t, a.name, out)
				if out != "[]\n" {
					return
				}
			}
			if !answered {
				t.Error("no run in testdata/runs can be asked")
			}
		})
	}
}

// TestEveryJSONHasASchema: a command that offers --format json is in jsonAnswers.
func TestEveryJSONHasASchema(t *testing.T) {
	t.Setenv("COMMQ_STORE", smallStore(t))
	known := map[string]bool{}
	for _, a := range append(queryAnswers(t), jsonAnswers...) {
		known[a.command] = true
	}
	met := 0
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		offer, has := c.GetFlagCompletionFunc("format")
		if c.LocalFlags().Lookup("format") == nil || !has {
			return
		}
		formats, _ := offer(c, nil, "")
		if !slices.ContainsFunc(formats, func(f string) bool { return strings.Split(f, "\t")[0] == "json" }) {
			return
		}
		met++
		if !known[strings.TrimPrefix(c.CommandPath(), "commq ")] {
			t.Errorf("%s prints JSON without a schema; add it to jsonAnswers and run go generate ./cmd/commq", c.CommandPath())
		}
	})
	if met < len(known) {
		t.Errorf("%d commands offer --format json, %d are in jsonAnswers", met, len(known))
	}
}

// jsonPage is docs/reference/json.md.
func jsonPage(t *testing.T) string {
	t.Setenv("COMMQ_STORE", runsDir)
	var b strings.Builder
	b.WriteString(`<!-- Code generated by go generate ./cmd/commq; DO NOT EDIT. -->

# Answers in JSON

What each command prints with ` + "`--format json`" + `, with a [JSON Schema](https://json-schema.org) (2020-12) of every answer: its
keys, their types, units and meaning.

` + shown(t, "query late-senders --run cg.A.16 --limit 2 --format json") + `
` + shown(t, "runs check ep.W.4 cg.A.4 --format json") + `
In all answers:

- A key that ends in ` + "`_ns` is a time in nanoseconds, in `_bytes` a size in bytes, in `_per_s` something per second, and in\n" +
		"  `share`" + ` a fraction of 1. Ranks count from 0, phases and findings from 1.
- ` + "`null`" + ` means not known or not applicable, never 0. A list is never ` + "`null`" + ` but empty. The schema lists the keys that are
  always there as ` + "`required`" + `; others are left out where they have nothing to say.
- No other keys than those of the schema are there. Integers may be beyond 2^53: read them as such.
- ` + "`jsonl`" + `, where a command has it, prints the objects of the list, one a line.
- An error is a sentence on stderr and an exit status of 2, with nothing on stdout. Status 1 comes with an answer: a check
  failed. Three commands have status 2 and an answer, with what is known: ` + "`commq check`" + ` if a rule could not be
  decided, ` + "`commq predict`" + ` if the prediction or its time is refused, and ` + "`commq simulate --sweep`" + ` if a combination
  could not be simulated.

## Commands

| command | schema | what it is |
|---|---|---|
`)
	for _, a := range jsonAnswers {
		fmt.Fprintf(&b, "| [`%s`](commands.md#commq-%s) | [%s](json/%s.schema.json) | %s |\n", a.title()[len("commq "):],
			strings.ReplaceAll(a.command, " ", "-"), a.name, a.name, a.about)
	}
	b.WriteString("\n`commq diagnose` and `check --write` also write SARIF and JUnit, `detect` writes SARIF; " +
		"their formats are not ours.\n" +
		"\n## Queries\n\nRows of `commq query NAME`, with the column `run` first if several runs are asked. " +
		"Queries of your own have the columns\nof their headers.\n\n| query | schema |\n|---|---|\n")
	for _, a := range queryAnswers(t) {
		name := strings.TrimPrefix(a.name, "query/")
		fmt.Fprintf(&b, "| [%s](../QUERIES.md#%s) | [%s](json/%s.schema.json) |\n", name, name, a.name, a.name)
	}
	b.WriteString("\n## How to use a schema\n\nCheck an answer with any validator, for example " +
		"[check-jsonschema](https://pypi.org/project/check-jsonschema/):\n\n" +
		"    commq detect --run cg.A.16 --format json > findings.json\n" +
		"    check-jsonschema --schemafile docs/reference/json/detect.schema.json findings.json\n")
	return b.String()
}

// shown is a command line and its output as a block of Markdown.
func shown(t *testing.T, line string) string {
	t.Helper()
	text := "$ commq " + line + "\n" + commq(t, strings.Fields(line)...)
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

// jsonLinks are the schemas of a command for its chapter of the reference; "" if it has none.
func jsonLinks(command string) string {
	var links []string
	for _, a := range jsonAnswers {
		if a.command == command {
			link := fmt.Sprintf("[%s](json/%s.schema.json)", a.name, a.name)
			if a.with != "" {
				link += " (with `" + a.with + "`)"
			}
			links = append(links, link)
		}
	}
	if links == nil {
		return ""
	}
	return "\n[JSON](json.md) schema: " + strings.Join(links, ", ") + ".\n"
}
