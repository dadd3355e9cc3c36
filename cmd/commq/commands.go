package main

import "github.com/spf13/cobra"

// commands lists the commands in the order help shows them.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newCaptureCommand(a),
		newExecCommand(a),
		newEnvCommand(a),
		newIngestCommand(a),
		newImportCommand(a),
		newWatchCommand(a),
		newHangCommand(a),
		newDoctorCommand(a),
		newRunsCommand(a),
		newCompactCommand(a),
		newStoreCommand(a),
		newQueryCommand(a),
		newSQLCommand(a),
		newReportCommand(a),
		newDiffCommand(a),
		newBaselineCommand(a),
		newCheckCommand(a),
		newCriticalPathCommand(a),
		newCalibrateCommand(a),
		newSimulateCommand(a),
		newDetectCommand(a),
		newReplaceCommand(a),
		newReplayCommand(a),
		newPhasesCommand(a),
		newSignCommand(a),
		newPredictCommand(a),
		newFitCommand(a),
		newExtrapolateCommand(a),
		newExportCommand(a),
		newCompletionCommand(a),
		newSimrankCommand(a),
	}
}
