// Command suite predicts runs that were left out from smaller ones, and writes a table of what was right, in its
// interval, unknown and wrong.
//
//	go run ./bench/predict/suite < bench/predict/suite.tsv
//
// A line of the list has a program's name, the numbers of ranks to learn from, and those to predict. The signature of a
// run is the file NAME.RANKS.json.gz (commq export signature) in one of the folders; runs without one are left out.
// So are runs of another build than the one to predict, as places in two builds cannot be compared.
// What is wrong is named on stderr; the exit status is then 1. So are answers that take more than a second of processor
// time, with the model if it is made for them.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/commq/commq/predict/extrapolated"
	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/training"
)

func main() {
	folders := flag.String("signatures", "testdata/signatures", "folders with signatures, separated by commas")
	causes := flag.Bool("causes", false, "also write a table of why numbers are not known")
	only := flag.String("only", "", "only the programs with these names, separated by commas")
	flag.Parse()
	s := newSuite(os.Stdout, strings.Split(*folders, ","))
	s.only = *only
	fmt.Println("| program | learnt from | at | edges | calls | messages | bytes | wrong | what is not known |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for name, ranks := range programs(os.Stdin) {
		s.predict(name, ranks.learn, ranks.held)
	}
	fmt.Printf("\nOf %d numbers %s.\n", s.sum.Exact+s.sum.Inside+s.sum.Outside+s.sum.Unknown+s.sum.Wrong, shares(&s.sum))
	if *causes {
		s.lost.print(s.sum.Exact + s.sum.Inside + s.sum.Outside + s.sum.Unknown + s.sum.Wrong)
	}
	if s.sum.Wrong > 0 {
		os.Exit(1)
	}
}

// split is the numbers of ranks of a line of the list.
type split struct{ learn, held []string }

// programs returns the lines of a list by the names of programs.
func programs(list io.Reader) iter.Seq2[string, split] {
	return func(yield func(string, split) bool) {
		for lines := bufio.NewScanner(list); lines.Scan(); {
			fields := strings.Split(lines.Text(), "\t")
			if len(fields) != 3 || strings.HasPrefix(lines.Text(), "#") {
				continue
			}
			if !yield(fields[0], split{strings.Fields(fields[1]), strings.Fields(fields[2])}) {
				return
			}
		}
	}
}

// suite is a run over a list of programs.
type suite struct {
	table   io.Writer // gets the lines of the table
	folders []string
	only    string
	sum     report.Tally    // of all numbers
	done    map[string]bool // lines; two may be alike where runs are missing
	lost    losses
}

func newSuite(table io.Writer, folders []string) *suite {
	return &suite{table: table, folders: folders, done: map[string]bool{}, lost: losses{}}
}

// read reads the signature of a run; nil if there is none.
func (s *suite) read(name, ranks string) *signature.Signature {
	for _, folder := range s.folders {
		file := filepath.Join(folder, name+"."+ranks+".json.gz")
		if _, err := os.Stat(file); err != nil {
			continue
		}
		x, err := training.ReadFile(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return x
	}
	return nil
}

// predict predicts the held-out runs of a program.
func (s *suite) predict(name string, learn, held []string) {
	if s.only != "" && !strings.Contains(","+s.only+",", ","+name+",") {
		return
	}
	models := map[string]*model.Model{}
	for _, p := range held {
		measured := s.read(name, p)
		if measured == nil {
			continue
		}
		runs, from := s.sameBuild(name, learn, measured)
		line := fmt.Sprint(name, from, p)
		if len(runs) < 2 || s.done[line] {
			continue
		}
		s.done[line] = true
		before := processorTime()
		m, err := models[fmt.Sprint(from)], error(nil)
		if m == nil {
			m, err = model.New(runs)
			models[fmt.Sprint(from)] = m
		}
		if err != nil {
			fmt.Fprintf(s.table, "| %s | %s | %s | | | | | | all: %v |\n", name, strings.Join(from, " "), p, err)
			continue
		}
		s.judge(name, strings.Join(from, " "), m, measured)
		if used := processorTime() - before; used > time.Second {
			fmt.Fprintf(os.Stderr, "%s from %s at %s: %.1f s\n", name, strings.Join(from, " "), p, used.Seconds())
		}
	}
}

// processorTime returns how much processor time the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// sameBuild returns the runs to learn from that are of the same build as the measured one, and their numbers of ranks.
func (s *suite) sameBuild(name string, learn []string, measured *signature.Signature) (
	runs []*signature.Signature, from []string,
) {
	for _, p := range learn {
		switch x := s.read(name, p); {
		case x == nil:
		case build(x) != build(measured):
			fmt.Fprintf(os.Stderr, "%s: %s ranks left out for %d: another build\n", name, p, measured.Ranks)
		default:
			runs, from = append(runs, x), append(from, p)
		}
	}
	return runs, from
}

// build returns the build id of the program; empty if the run has no call paths.
func build(s *signature.Signature) string {
	if len(s.Frames) == 0 {
		return ""
	}
	return s.Frames[0].BuildID
}

// judge predicts one run and writes its line.
func (s *suite) judge(name, from string, m *model.Model, measured *signature.Signature) {
	x, refused := extrapolated.Extrapolate(context.Background(), m, measured.Ranks,
		extrapolated.Conditions{Explained: 0.95}, nil)
	v := report.Judge(m, x, measured)
	for why, n := range v.Lost {
		s.lost.add(why, name, n)
	}
	s.lost.add(edgesUnknown, name, v.Edges.Unknown)
	wrong := int64(0)
	for _, t := range []*report.Tally{&v.Edges, &v.Calls, &v.Messages, &v.Bytes} {
		wrong += t.Wrong
		s.sum.Exact, s.sum.Inside, s.sum.Outside = s.sum.Exact+t.Exact, s.sum.Inside+t.Inside, s.sum.Outside+t.Outside
		s.sum.Unknown, s.sum.Wrong = s.sum.Unknown+t.Unknown, s.sum.Wrong+t.Wrong
	}
	fmt.Fprintf(s.table, "| %s | %s | %d | %s | %s | %s | %s | %d | %s |\n", name, from, measured.Ranks,
		shares(&v.Edges), shares(&v.Calls), shares(&v.Messages), shares(&v.Bytes), wrong,
		unknown(m, x, measured.Ranks, refused))
	for _, w := range v.Places {
		fmt.Fprintf(os.Stderr, "%s at %d: %s of %s on %d ranks, the first %d: %d predicted, %d measured\n", name,
			measured.Ranks, w.Number, w.Call, w.Ranks, w.Rank, w.Predicted, w.Measured)
	}
}

// shares lists the shares of a tally that are not 0, in percent.
func shares(t *report.Tally) string {
	all := t.Exact + t.Inside + t.Outside + t.Unknown + t.Wrong
	var list []string
	for _, x := range []struct {
		n    int64
		what string
	}{{t.Exact, "exact"}, {t.Inside, "inside"}, {t.Outside, "outside"}, {t.Unknown, "unknown"}, {t.Wrong, "wrong"}} {
		switch {
		case x.n == 0:
		case x.n == all:
			return x.what
		default:
			list = append(list, strconv.FormatFloat(100*float64(x.n)/float64(all), 'g', 3, 64)+" % "+x.what)
		}
	}
	return strings.Join(list, ", ")
}

// unknown tells in a few words what is not known.
func unknown(m *model.Model, x *generate.Prediction, ranks int32, refused error) string {
	p := report.NewPartial(report.NewWeigher(m, x, ranks))
	switch {
	case refused == nil:
		return ""
	case p == nil:
		why, _, _ := strings.Cut(refused.Error(), ":")
		return "all: " + why
	}
	return fmt.Sprintf("%d of %d communications", p.Unknown, p.Known+p.Unknown)
}
