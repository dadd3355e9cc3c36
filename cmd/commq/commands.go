package main

import "github.com/spf13/cobra"

// commandGroup is a group of commands in the help of commq.
type commandGroup struct {
	title    string
	commands []*cobra.Command
}

// commandGroups lists the commands in the order of help.
func commandGroups(a *app) []commandGroup {
	return []commandGroup{
		{"Record", []*cobra.Command{newCaptureCommand(a), newExecCommand(a), newIngestCommand(a), newWatchCommand(a),
			newDoctorCommand(a)}},
		{"Ask", []*cobra.Command{newQueryCommand(a), newSQLCommand(a), newDiagnoseCommand(a), newReportCommand(a), newUICommand(a),
			newCriticalPathCommand(a), newPhasesCommand(a)}},
		{"Compare", []*cobra.Command{newDiffCommand(a), newCheckCommand(a)}},
		{"Model", []*cobra.Command{newCalibrateCommand(a), newSimulateCommand(a), newFitCommand(a),
			newPredictCommand(a)}},
		{"Rewrite", []*cobra.Command{newDetectCommand(a), newReplaceCommand(a), newReplayCommand(a)}},
		{"Data", []*cobra.Command{newRunsCommand(a), newStoreCommand(a), newImportCommand(a), newExportCommand(a)}},
	}
}

// addCommands adds the commands to commq. Those of no group are not listed.
func addCommands(a *app, root *cobra.Command) {
	for _, g := range commandGroups(a) {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(newCompletionCommand(a), newSimrankCommand(a))
}

func init() { cobra.EnableCommandSorting = false } // help lists commands in the order in which they are added
