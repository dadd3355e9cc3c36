package main

import (
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/doctor"
	"github.com/commq/commq/internal/about"
	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/queries"
)

// tellVersion gives the root command --version, with --verbose for a bug report.
func tellVersion(root *cobra.Command) {
	root.Flags().Bool("verbose", false, "with --version: print what a bug report needs to say about the machine")
	addVersionText()
	root.SetVersionTemplate("{{version .}}")
}

// addVersionText makes versionText known to templates, of all root commands: tests run several at once.
var addVersionText = sync.OnceFunc(func() { cobra.AddTemplateFunc("version", versionText) })

// versionText returns the text of commq --version.
func versionText(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "commq version %s", version)
	if commit := about.Commit(); commit != "" {
		fmt.Fprintf(&b, ", commit %s", commit)
	}
	b.WriteByte('\n')
	if verbose, _ := c.Flags().GetBool("verbose"); verbose {
		for _, fact := range doctor.Describe(c.Context(), queries.EngineVersion()) {
			fmt.Fprintf(&b, "%-10s  %s\n", fact.Name, printable.Line(fact.Value))
		}
	}
	return b.String()
}
