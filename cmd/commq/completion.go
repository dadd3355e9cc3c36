package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
)

// shells are the shells with completion.
var shells = [...]string{"bash", "zsh", "fish"}

func newCompletionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print the script that makes a shell complete commq's command lines",
		Long: `completion prints a script for bash, zsh or fish. After the shell has read it, the tab key completes
commands, flags and their values, queries and their parameters, the runs of the store ($COMMQ_STORE, or --store in
the line) and files. The script asks commq, so it stays valid when queries or runs are added.

bash needs the package bash-completion, zsh needs compinit.`,
		Example: `  source <(commq completion bash)        # this shell
  commq completion bash > ~/.local/share/bash-completion/completions/commq
  commq completion zsh > "${fpath[1]}/_commq"
  commq completion fish > ~/.config/fish/completions/commq.fish`,
		Args:              wantArgs(1, 1, "a shell: "+strings.Join(shells[:], ", ")),
		ValidArgsFunction: completeOnce(shells[:]...),
		RunE: func(c *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return c.Root().GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return c.Root().GenZshCompletion(a.stdout)
			case "fish":
				return c.Root().GenFishCompletion(a.stdout, true)
			}
			return fmt.Errorf("completion %s: want one of %s", args[0], strings.Join(shells[:], ", "))
		},
	}
}

// register makes f complete the values of flags.
func register(c *cobra.Command, f cobra.CompletionFunc, flags ...string) {
	for _, flag := range flags {
		if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
			panic(err) // the command has no such flag
		}
	}
}

// fixed offers values; a tab may separate a value from its meaning.
func fixed(values []string, directive cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var offered []string
		for _, v := range values {
			if strings.HasPrefix(v, prefix) {
				offered = append(offered, v)
			}
		}
		return offered, directive
	}
}

// complete makes shell completion offer fixed values for a flag.
func complete(c *cobra.Command, flag string, values ...string) {
	register(c, fixed(values, cobra.ShellCompDirectiveNoFileComp), flag)
}

// completeNothing is for flags whose values cannot be guessed: numbers, new names.
func completeNothing(c *cobra.Command, flags ...string) {
	register(c, cobra.NoFileCompletions, flags...)
}

// completeFiles offers files with these endings for a flag; all files if there are no endings.
func completeFiles(c *cobra.Command, flag string, endings ...string) {
	register(c, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		if len(endings) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}, flag)
}

// completeFolders offers folders for flags.
func completeFolders(c *cobra.Command, flags ...string) { register(c, folders, flags...) }

func folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// oneFolder offers folders for the first argument.
func oneFolder(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return folders(c, args, prefix)
}

// files offers files for every argument.
func files(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// oneFile offers files for the first argument.
func oneFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// completeOnce offers fixed values for the first argument.
func completeOnce(values ...string) cobra.CompletionFunc {
	offer := fixed(values, cobra.ShellCompDirectiveNoFileComp)
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(c, args, prefix)
	}
}

// completeRuns offers the runs of the store that are not yet among the arguments, and folders after the beginning of a
// path.
func completeRuns(a *app) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if strings.ContainsRune(prefix, '/') || strings.HasPrefix(prefix, ".") {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		manifests, _ := fs.Glob(os.DirFS(a.storeDir()), "*/manifest.json")
		var names []string
		for _, m := range manifests {
			if name := filepath.Dir(m); strings.HasPrefix(name, prefix) && !slices.Contains(args, name) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeOneRun offers the runs of the store for the first argument.
func completeOneRun(a *app) cobra.CompletionFunc {
	runs := completeRuns(a)
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return runs(c, args, prefix)
	}
}

// completeRunOrFile offers the runs of the store and files for the first argument.
func completeRunOrFile(a *app) cobra.CompletionFunc {
	runs := completeOneRun(a)
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		names, _ := runs(c, args, prefix)
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names, cobra.ShellCompDirectiveDefault
	}
}

// completeJobs offers the jobs in the spool folder given as the first argument.
func completeJobs(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	jobs, _ := ingest.Jobs(args[0])
	var ids []string
	for _, j := range jobs {
		ids = append(ids, fmt.Sprintf("%s\t%s, %s", j.ID, filepath.Base(j.Program), counted(int64(j.Ranks), "rank")))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// completeCalls offers functions of MPI for the last pattern of a list; a pattern may begin with a minus.
func completeCalls(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	last := strings.LastIndex(prefix, ",") + 1
	before, word := prefix[:last], prefix[last:]
	if strings.HasPrefix(word, "-") {
		before, word = before+"-", word[1:]
	}
	var names []string
	for i := range schema.Calls {
		if name := schema.Calls[i].Name; name != "" && strings.HasPrefix(name, word) {
			names = append(names, before+name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeParam offers values for a query's parameter.
func completeParam(c *cobra.Command, p *queries.Param) {
	switch p.Kind {
	case "choice":
		complete(c, p.Name, p.Choices...)
	case "file":
		completeFiles(c, p.Name, "csv")
	case "condition":
		var columns []string
		for _, t := range schema.Tables() {
			if t.Name == p.Table {
				for _, column := range t.Columns {
					columns = append(columns, column.Name)
				}
			}
		}
		register(c, fixed(columns, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace), p.Name)
	default:
		completeNothing(c, p.Name)
	}
}

// completeQueries offers the names of queries with their summaries.
func completeQueries(a *app, c *cobra.Command, flag string) {
	register(c, func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		l, err := a.queryLibrary()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names := make([]string, len(l.all))
		for i, q := range l.all {
			names[i] = q.Name + "\t" + q.Summary
		}
		return fixed(names, cobra.ShellCompDirectiveNoFileComp)(c, args, prefix)
	}, flag)
}

// completeStore offers folders for --store, a flag of every command.
func completeStore(root *cobra.Command) {
	if err := root.RegisterFlagCompletionFunc("store", folders); err != nil {
		panic(err)
	}
}
