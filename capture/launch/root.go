package launch

import (
	"context"
	"os/exec"
	"slices"
	"strings"
)

// RootVariables are the environment variables, both 1, with which Open MPI's launcher starts programs as root. Without
// them, or its option --allow-run-as-root, it refuses.
var RootVariables = [...]string{"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}

// RefusesRoot reports whether the launcher is Open MPI's and refuses to start programs for this user (0 is root) with
// these arguments and this environment.
func RefusesRoot(ctx context.Context, launcher, environ []string, user int) bool {
	if user != 0 || slices.ContainsFunc(launcher, func(arg string) bool {
		return strings.TrimLeft(arg, "-") == "allow-run-as-root"
	}) {
		return false
	}
	allowed := func(name string) bool { return slices.Contains(environ, name+"=1") }
	if allowed(RootVariables[0]) && allowed(RootVariables[1]) {
		return false
	}
	path, err := exec.LookPath(launcher[0])
	return err == nil && belongsTo(ctx, "openmpi", path)
}
