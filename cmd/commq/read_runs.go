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
	c.Args, c.ValidArgsFunction = cobra.ArbitraryArgs, completeRuns(a)
	one := flag.Value.Type() == "string"
	if one {
		c.ValidArgsFunction = completeOneRun(a)
	}
	beforeRun(c, func(args []string) error {
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
		if !one || !isPattern(flag.Value.String()) {
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
	})
}

// isPattern reports whether the name of a run may be a pattern.
func isPattern(name string) bool { return strings.ContainsAny(name, "*?[") }
