// Command scale measures how what commq does grows with the number of messages (bench/scale.md).
//
//	go run ./bench/scale queries --commq ./commq --store STORE --run RUN --messages N >> scale.csv    each canned query, a process each
//	go run ./bench/scale queries ... --trino http://me@host:8080?catalog=hive --servers PID,PID >> trino.csv                          the same of a Trino server
//	go run ./bench/scale command --label write --messages N -- ./gen ... >> scale.csv                 any command
//	go run ./bench/scale table scale.csv                                                              as Markdown
//	go run ./bench/scale plot --before old.csv --output scale.png scale.csv                           cores' time and memory, both times
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/commq/commq/queries"
)

func main() {
	err := errors.New("want queries, command, table or plot")
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "queries":
			err = measureQueries(os.Args[2:])
		case "command":
			err = measureCommand(os.Args[2:])
		case "table":
			err = table(os.Args[2:])
		case "plot":
			err = draw(os.Args[2:])
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(2)
	}
}

// measured is the result of measuring a process.
type measured struct {
	messages           int64
	what               string
	seconds, coreTimes float64 // elapsed; user and system time of all cores
	peakMiB            float64
	lines              int // of output
	failed             string
}

// measure runs a command.
func measure(what string, messages int64, within time.Duration, args []string) measured {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	begin := time.Now()
	err := cmd.Run()
	m := measured{messages: messages, what: what, seconds: time.Since(begin).Seconds(),
		lines: bytes.Count(out.Bytes(), []byte("\n"))}
	if s := cmd.ProcessState; s != nil {
		m.coreTimes = (s.UserTime() + s.SystemTime()).Seconds()
		if u, ok := s.SysUsage().(*syscall.Rusage); ok {
			m.peakMiB = float64(u.Maxrss) / 1024
		}
	}
	if ctx.Err() != nil {
		m.failed = "not done in " + within.String()
	} else if err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		m.failed = cmp.Or(text, err.Error())
	}
	return m
}

// write prints a line of the results.
func (m measured) write() error {
	w := csv.NewWriter(os.Stdout)
	err := w.Write([]string{strconv.FormatInt(m.messages, 10), m.what, fmt.Sprintf("%.2f", m.seconds),
		fmt.Sprintf("%.2f", m.coreTimes), fmt.Sprintf("%.0f", m.peakMiB),
		strconv.Itoa(m.lines), m.failed})
	w.Flush()
	return errors.Join(err, w.Error())
}

func measureQueries(args []string) error {
	f := flag.NewFlagSet("queries", flag.ContinueOnError)
	commq := f.String("commq", "commq", "program to measure")
	store := f.String("store", "runs", "folder of runs")
	run := f.String("run", "", "run to ask")
	messages := f.Int64("messages", 0, "messages that it has")
	memory := f.Int("memory", 4096, "memory that the engine may use")
	within := f.Duration("within", 10*time.Minute, "end a query after this time")
	only := f.String("only", "", "names of queries with commas; otherwise all")
	trino := f.String("trino", "", "address of a Trino server that answers (commq query --engine trino --dsn)")
	servers := f.String("servers", "", "process numbers of its nodes with commas: what they take is counted, not "+
		"what commq takes")
	if err := f.Parse(args); err != nil {
		return err
	}
	nodes, err := newServers(*servers)
	if err != nil {
		return err
	}
	all, err := queries.All()
	if err != nil {
		return err
	}
	for _, q := range all {
		// wire compares two runs
		if q.Name == "wire" || *only != "" && !slices.Contains(strings.Split(*only, ","), q.Name) {
			continue
		}
		line := []string{*commq, "query", q.Name, "--store", *store, "--run", *run, "--format", "csv"}
		if *trino != "" {
			line = append(line, "--engine", "trino", "--dsn", *trino)
		} else {
			line = append(line, "--memory", strconv.Itoa(*memory))
		}
		before, err := nodes.used()
		if err != nil {
			return err
		}
		m := measure(q.Name, *messages, *within, line)
		if len(nodes) > 0 {
			after, err := nodes.used()
			if err != nil {
				return err
			}
			m.coreTimes, m.peakMiB = after.coreTimes-before.coreTimes, after.peakMiB
		}
		if err := m.write(); err != nil {
			return err
		}
	}
	return nil
}

func measureCommand(args []string) error {
	f := flag.NewFlagSet("command", flag.ContinueOnError)
	label := f.String("label", "", "what it is called in the results")
	messages := f.Int64("messages", 0, "messages that it is about")
	within := f.Duration("within", 2*time.Hour, "end it after this time")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() == 0 || *label == "" {
		return errors.New("command: want --label NAME --messages N -- PROGRAM [ARGUMENTS]")
	}
	return measure(*label, *messages, *within, f.Args()).write()
}

// read reads results. Of several measurements of the same thing it keeps the one with the least CPU time.
func read(names []string) ([]measured, error) {
	best := map[string]measured{}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		rows, err := csv.NewReader(file).ReadAll()
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i, row := range rows {
			m := measured{what: row[1], failed: row[6]}
			var errs [5]error
			m.messages, errs[0] = strconv.ParseInt(row[0], 10, 64)
			m.seconds, errs[1] = strconv.ParseFloat(row[2], 64)
			m.coreTimes, errs[2] = strconv.ParseFloat(row[3], 64)
			m.peakMiB, errs[3] = strconv.ParseFloat(row[4], 64)
			m.lines, errs[4] = strconv.Atoi(row[5])
			if err := errors.Join(errs[:]...); err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", name, i+1, err)
			}
			key := row[0] + " " + m.what
			if old, ok := best[key]; !ok || m.coreTimes < old.coreTimes {
				best[key] = m
			}
		}
	}
	var all []measured
	for _, m := range best {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b measured) int {
		return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.messages, b.messages))
	})
	return all, nil
}

// table prints the results: a row per query with CPU time and peak memory for each number of messages.
func table(names []string) error {
	all, err := read(names)
	if err != nil {
		return err
	}
	var sizes []int64
	for _, m := range all {
		if !slices.Contains(sizes, m.messages) {
			sizes = append(sizes, m.messages)
		}
	}
	slices.Sort(sizes)
	head, rule := "| |", "|---|"
	for _, n := range sizes {
		head += fmt.Sprintf(" %.4g messages: s | cores' s | MiB |", float64(n))
		rule += "---|---|---|"
	}
	fmt.Println(head + "\n" + rule)
	for i := 0; i < len(all); {
		line := "| " + all[i].what + " |"
		what := all[i].what
		for _, n := range sizes {
			switch {
			case i == len(all) || all[i].what != what || all[i].messages != n:
				line += " | | |"
				continue
			case all[i].failed != "":
				line += " " + strings.ReplaceAll(all[i].failed, "|", "/") + " | | |"
			default:
				line += fmt.Sprintf(" %.1f | %.1f | %.0f |", all[i].seconds, all[i].coreTimes, all[i].peakMiB)
			}
			i++
		}
		fmt.Println(line)
	}
	return nil
}
