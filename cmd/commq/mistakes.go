package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/commq/commq/internal/nearest"
	"github.com/commq/commq/queries"
)

// anyNumber is for wantArgs without an upper bound.
const anyNumber = -1

// wantArgs accepts from least (0 or 1) to most arguments that are not flags; its error names the missing ones as
// what.
func wantArgs(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		n := len(args)
		switch {
		case n >= least && (n <= most || most == anyNumber):
			return nil
		case n < least:
			return fmt.Errorf("%snothing given; want %s", placeOf(c), what)
		}
		return fmt.Errorf("%sunexpected argument %q; want %s", placeOf(c), args[most], what)
	}
}

// placeOf is the command for the beginning of a message: "store push: "; empty for commq itself.
func placeOf(c *cobra.Command) string {
	_, path, below := strings.Cut(c.CommandPath(), " ")
	if !below {
		return ""
	}
	return path + ": "
}

// isParent reports whether a command takes no arguments but the name of a command below it.
func isParent(c *cobra.Command) bool { return c.HasSubCommands() && c.ValidArgsFunction == nil }

// explainMistakes makes commands that only have subcommands reject unknown ones, and explains wrong flags.
func explainMistakes(root *cobra.Command) {
	root.SetFlagErrorFunc(flagMistake)
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		c.Args = needFlags(c.Args)
		if isParent(c) && !c.Runnable() {
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(c *cobra.Command, args []string) error {
				if len(args) == 0 {
					return c.Help()
				}
				return unknownCommand(c, args[0])
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

// needFlags rejects command lines without a flag that the command requires. cobra checks that too, later, with a
// message that does not name the command.
func needFlags(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, words []string) (err error) {
		if args != nil {
			if err = args(c, words); err != nil {
				return err
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if err == nil && !f.Changed && f.Annotations[cobra.BashCompOneRequiredFlag] != nil {
				err = missingValue(c, f)
			}
		})
		return err
	}
}

// errNoRun is the error about a command without runs.
var errNoRun = errors.New("no run given; name one as an argument or with --run")

// missingValue is the error about a flag without a value.
func missingValue(c *cobra.Command, f *pflag.Flag) error {
	if f.Name == "run" {
		return fmt.Errorf("%s%w", placeOf(c), errNoRun)
	}
	what := "a value"
	if name, _ := pflag.UnquoteUsage(f); name == strings.ToUpper(name) {
		what = name
	}
	return fmt.Errorf("%s--%s: nothing given; want %s", placeOf(c), f.Name, what)
}

// unknownCommand is the error about a word that is no command below c.
func unknownCommand(c *cobra.Command, word string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	other := "want " + strings.Join(names, ", ")
	if !c.HasParent() {
		names = append(names, "help")
		other = "commq --help lists the commands"
		if query := nearest.Name(word, queries.Names()); query != "" {
			other = "did you mean query " + query + "?"
		}
	}
	return fmt.Errorf("%sunknown command %q%s", placeOf(c), word, nearest.HintOr(word, names, other))
}

// flagMistake explains an error about the flags of a command.
func flagMistake(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		// A command below c would have had the flag, but the word for it is unknown.
		if args := c.Flags().Args(); len(args) > 0 && isParent(c) {
			return unknownCommand(c, args[0])
		}
		return unknownFlag(c, unknown)
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		cause := "want " + wantedValue(f)
		if wantedValue(f) == "" {
			cause = invalid.Unwrap().Error()
		}
		if strings.HasPrefix(cause, f.Name+" ") { // parameters of queries name themselves
			return fmt.Errorf("%s--%s", placeOf(c), cause)
		}
		return fmt.Errorf("%s--%s %s: %s", placeOf(c), f.Name, invalid.GetValue(), cause)
	case errors.As(err, &missing):
		return missingValue(c, missing.GetFlag())
	}
	return fmt.Errorf("%s%w", placeOf(c), err)
}

func unknownFlag(c *cobra.Command, unknown *pflag.NotExistError) error {
	word, dashes := unknown.GetSpecifiedName(), "--"
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		word, dashes = letters, "-"
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	hint := ""
	if having := queriesWith(c, word); len(having) > 0 {
		hint = "; queries with it: " + firstNames(having)
	} else if name := nearest.Name(word, names); name != "" {
		hint = fmt.Sprintf("; did you mean --%s?", name)
	}
	return fmt.Errorf("%sunknown flag %s%s%s", placeOf(c), dashes, word, hint)
}

// queriesWith lists commq's queries that have a parameter, if c is the command of a query.
func queriesWith(c *cobra.Command, parameter string) (names []string) {
	if !c.HasParent() || c.Parent().Name() != "query" {
		return nil
	}
	all, err := queries.All()
	if err != nil {
		return nil // the hint is left out
	}
	for _, q := range all {
		if slices.ContainsFunc(q.Params, func(p queries.Param) bool { return p.Name == parameter }) {
			names = append(names, q.Name)
		}
	}
	return names
}

// wantedValue describes the values of a flag by its type; empty if the flag has a type of its own, whose errors say
// it.
func wantedValue(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int32", "int64":
		return "a whole number"
	case "uint64", "uint32", "uint":
		return "a whole number, not negative"
	case "intSlice", "int64Slice":
		return "whole numbers, separated by commas"
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a time with its unit, as 500ms, 10s or 2h"
	}
	return ""
}

// errorText is the text of an error, with advice where a file is not there.
func errorText(err error) string {
	text, near := err.Error(), nearFile(err)
	var path *fs.PathError
	if near != "" && errors.As(err, &path) && path.Op == "stat" {
		text = strings.TrimSuffix(text, path.Error()) + "there is no file or folder " + path.Path
	}
	return text + near
}

// nearFile is advice after an error that ends with a file that is not there: the file of the nearest name in its
// folder, or where it was looked for. Errors that say more have advice of their own.
func nearFile(err error) string {
	var path *fs.PathError
	if !errors.As(err, &path) || !errors.Is(path, fs.ErrNotExist) || !strings.HasSuffix(err.Error(), path.Error()) {
		return ""
	}
	folder, name := filepath.Split(path.Path)
	here := filepath.Clean(folder)
	entries, readErr := os.ReadDir(here)
	if readErr != nil {
		return "; there is no folder " + here
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if near := nearest.Name(name, names); near != "" {
		return fmt.Sprintf("; did you mean %s?", folder+near)
	}
	if here == "." {
		return "; no file here has a name like it"
	}
	return "; no file in the folder " + here + " has a name like it"
}

// checkProgram returns an error if there is no such program here: what is in its place, or the nearest name.
func checkProgram(name string) error {
	if _, err := exec.LookPath(name); err == nil || errors.Is(err, exec.ErrDot) {
		return nil
	}
	folder, base := filepath.Split(name)
	switch info, err := os.Stat(name); {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder; want a program", name)
	case err == nil && info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable; make it so with chmod +x %s, or name another program", name, name)
	case err == nil && folder == "":
		return fmt.Errorf("no program %s in $PATH; did you mean ./%s?", name, name)
	}
	here := folder
	if here == "" {
		here = "./"
	}
	entries, err := os.ReadDir(here)
	if err != nil {
		return fmt.Errorf("no program %s: there is no folder %s", name, filepath.Clean(folder))
	}
	var programs []string
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			programs = append(programs, e.Name())
		}
	}
	if near := nearest.Name(base, programs); near != "" {
		return fmt.Errorf("no program %s; did you mean %s?", name, here+near)
	}
	if folder == "" {
		return fmt.Errorf("no program %s in $PATH or here; name one that is there, as ./program", name)
	}
	return fmt.Errorf("no program %s; name one that is there, as ./program", name)
}

// checkSpool returns an error if a folder of records is not one.
func checkSpool(name string) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no folder %s; want the folder of records that --spool of commq capture or exec named", name)
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is a file; want the folder of records that --spool of commq capture or exec named", name)
	}
	return err
}

// oneOf rejects values of a flag that are not allowed.
func oneOf(flag, value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return fmt.Errorf("--%s %s: want one of %s%s", flag, value, strings.Join(allowed, ", "),
		nearest.Hint(value, allowed))
}

// newHelpCommand replaces cobra's, which does not fail when a command is unknown.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Describe a command",
		Long:  "help describes a command, as COMMAND --help does.",
		Example: `  commq help query
  commq help query density`,
		ValidArgsFunction: func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			about, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range about.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return fixed(names, cobra.ShellCompDirectiveNoFileComp)(c, args, prefix)
		},
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			switch {
			case err != nil:
				return err
			case len(rest) > 0 && about.HasSubCommands():
				return unknownCommand(about, rest[0])
			case len(rest) > 0:
				return fmt.Errorf("help: unexpected argument %q; %s has no commands", rest[0], about.CommandPath())
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
