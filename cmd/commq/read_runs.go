package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/run"
)

// readsRuns makes a command take runs as arguments too, as if each were a value of --run. If --run takes one run, a
// pattern must fit exactly one.
func (a *app) readsRuns(c *cobra.Command) {
	flag := c.Flags().Lookup("run")
	c.ValidArgsFunction = completeRuns(a)
	one := flag.Value.Type() == "string"
	if one {
		c.ValidArgsFunction = completeOneRun(a)
	}
	// Not in PreRunE: needFlags checks after Args whether a flag that the command requires is set.
	c.Args = func(c *cobra.Command, args []string) error {
		if n := c.ArgsLenAtDash(); n >= 0 {
			args = args[:n] // what follows -- is not for commq
		}
		if one && (len(args) > 1 || len(args) == 1 && flag.Changed) {
			return fmt.Errorf("%sunexpected argument %q; want one run", placeOf(c), args[len(args)-1])
		}
		for _, arg := range args {
			if err := c.Flags().Set("run", arg); err != nil {
				return err
			}
		}
		if !one {
			return nil
		}
		return a.settleOne(c)
	}
}

// settleOne replaces a pattern in --run, which takes one run, by the run that it fits. It must fit exactly one.
func (a *app) settleOne(c *cobra.Command) error {
	flag := c.Flags().Lookup("run")
	if !isPattern(flag.Value.String()) {
		return nil
	}
	dirs, err := run.Match(a.storeDir(), flag.Value.String())
	if err != nil {
		return nil // the command says what it wants; it may take other files too
	}
	if len(dirs) > 1 {
		return fmt.Errorf("%s%q fits %d runs, %s and others; want one", placeOf(c), flag.Value, len(dirs),
			filepath.Base(dirs[0]))
	}
	return c.Flags().Set("run", dirs[0])
}

// runsFlag gives a command --run, which may be repeated.
func (a *app) runsFlag(c *cobra.Command, runs *[]string, what string) {
	c.Flags().StringArrayVar(runs, "run", nil, "`RUN` "+what+": a name in the store, a path, or a pattern of either; "+
		"may be repeated")
	register(c, completeRuns(a), "run")
}

// wantsRuns gives a command --run and takes runs as arguments too; it needs at least one.
func (a *app) wantsRuns(c *cobra.Command, runs *[]string, what string) {
	a.runsFlag(c, runs, what)
	a.needsRuns(c, runs)
}

// wantsNames is wantsRuns for runs that need not be in the store: it takes names only.
func (a *app) wantsNames(c *cobra.Command, runs *[]string, what string) {
	c.Flags().StringArrayVar(runs, "run", nil, "name of the `RUN` "+what+"; may be repeated")
	register(c, completeRuns(a), "run")
	a.needsRuns(c, runs)
}

// wantsStored is wantsRuns for runs that must be in the store: it takes names and patterns, but no paths.
func (a *app) wantsStored(c *cobra.Command, runs *[]string, what string) {
	c.Flags().StringArrayVar(runs, "run", nil, "`RUN` "+what+": a name in the store or a pattern; may be repeated")
	register(c, completeRuns(a), "run")
	a.needsRuns(c, runs)
}

// needsRuns takes the values of --run as arguments too and wants at least one.
func (a *app) needsRuns(c *cobra.Command, runs *[]string) {
	a.readsRuns(c)
	beforeRun(c, func([]string) error {
		if len(*runs) == 0 {
			return fmt.Errorf("%snothing given; want names of runs", placeOf(c))
		}
		return nil
	})
}

// isPattern reports whether the name of a run may be a pattern.
func isPattern(name string) bool { return strings.ContainsAny(name, "*?[") }
