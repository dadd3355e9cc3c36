package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/writer"
	"github.com/commq/commq/writer/objects"
)

func newStorePushCommand(a *app) *cobra.Command {
	var runs []string
	c := &cobra.Command{
		Use:   "push s3://BUCKET/PREFIX [RUN...]",
		Short: "Copy runs into object storage",
		Long: `push copies runs of the store, all of them unless RUN names some, into a bucket of a service that
speaks S3. It writes the manifest of a run last, so that half a run is not visible. A run that is there with the same
manifest is skipped; another run of the same name stays, and push stops. --replace overwrites both: also a run whose
objects are damaged. RUN is a name, a path, or a pattern of either.

commq query, sql, check, runs list and runs show read runs there, with --store s3://BUCKET/PREFIX. For other commands
fetch them with store pull.

The service is $AWS_ENDPOINT_URL (default: Amazon's in $AWS_REGION); keys come from $AWS_ACCESS_KEY_ID and
$AWS_SECRET_ACCESS_KEY, or the profile $AWS_PROFILE of ~/.aws/credentials.`,
		Example: `  export AWS_ENDPOINT_URL=https://s3.example.org
  commq store push s3://jobs/2026-11
  commq store push s3://jobs/2026-11 bt.C.64 'sp.A.*'
  commq query density --store s3://jobs/2026-11 --run bt.C.64`,
		Args:              wantArgs(1, anyNumber, "s3://BUCKET/PREFIX and runs"),
		ValidArgsFunction: completeAfterStore(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := runStorePush(c.Context(), a, args[0], append(runs, args[1:]...)); err != nil {
				return fmt.Errorf("store push: %w", err)
			}
			return nil
		},
	}
	a.runsFlag(c, &runs, "to copy")
	a.writes(c)
	return c
}

func newStorePullCommand(a *app) *cobra.Command {
	var runs []string
	c := &cobra.Command{
		Use:   "pull s3://BUCKET/PREFIX [RUN...]",
		Short: "Copy runs from object storage into the store",
		Long: `pull copies runs of a bucket, all of them unless RUN names some, into the store, a folder. RUN is a
name or a pattern ('sp.A.*'). A run appears in the store complete or not at all. One that is there already is skipped;
another run of the same name, and one with missing files, stays, and pull stops. --replace fetches all of them again,
also those with damaged files. Service and keys are those of store push.`,
		Example: `  commq store pull s3://jobs/2026-11 bt.C.64
  commq store pull s3://jobs/2026-11 --store /scratch/runs`,
		Args:              wantArgs(1, anyNumber, "s3://BUCKET/PREFIX and runs"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := runStorePull(c.Context(), a, args[0], append(runs, args[1:]...)); err != nil {
				return fmt.Errorf("store pull: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&runs, "run", nil, "`RUN` to copy: a name in the bucket, or a pattern; may be repeated")
	completeNothing(c, "run")
	a.writes(c)
	return c
}

// completeAfterStore completes runs after the first argument, the URL, which nobody can guess.
func completeAfterStore(a *app) cobra.CompletionFunc {
	runs := completeRuns(a)
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return runs(c, args, prefix)
	}
}

func runStorePush(ctx context.Context, a *app, to string, names []string) error {
	s, err := objects.Open(to)
	if err != nil {
		return err
	}
	runs, err := namedOrAll(a, names)
	if err != nil {
		return err
	}
	before, err := s.PushAll(ctx, storedRuns(runs), a.replace)
	if err != nil {
		return err
	}
	a.note("%s in %s, %d of them before", counted(int64(len(runs)), "run"), s.URL, before)
	return nil
}

func runStorePull(ctx context.Context, a *app, from string, names []string) error {
	s, err := objects.Open(from)
	if err != nil {
		return err
	}
	copied, err := s.PullNamed(ctx, names, a.storeDir(), a.replace, warnLeftOut(a))
	if err != nil {
		return err
	}
	a.note("%s of %s in %s, %d of them before", counted(int64(copied.Runs), "run"), s.URL, a.storeDir(), copied.Before)
	return nil
}

// removeObjects removes the runs that names and patterns match from the store, which is object storage. A run that is
// named need not be readable.
func removeObjects(ctx context.Context, a *app, namesOrPatterns []string) error {
	s, err := a.objectStore()
	if err != nil {
		return err
	}
	for _, name := range namesOrPatterns {
		found := []objects.Info{{Name: name}}
		if isPattern(name) {
			if found, err = s.Find(ctx, []string{name}, warnLeftOut(a)); err != nil {
				return err
			}
		} else if writer.CheckName(name) != nil {
			return notInStore(a, name)
		}
		for _, f := range found {
			if err := s.Remove(ctx, f.Name); err != nil {
				return fmt.Errorf("runs remove: %w", err)
			}
			a.note("removed run %s", f.Name)
		}
	}
	return nil
}

// warnLeftOut warns of runs that cannot be read.
func warnLeftOut(a *app) func(error) { return func(err error) { a.warn("left out: %v", err) } }

// objectStore opens the store if it is object storage.
func (a *app) objectStore() (*objects.Store, error) { return objects.Open(a.storeDir()) }

// objectAccess tells DuckDB how to reach the store if it is object storage; nil if it is a folder.
func (a *app) objectAccess() (*queries.Objects, error) {
	if !objects.Is(a.storeDir()) {
		return nil, nil
	}
	s, err := a.objectStore()
	if err != nil {
		return nil, err
	}
	c := s.Access
	return &queries.Objects{Endpoint: c.Endpoint, Region: c.Region, TLS: c.TLS, PathStyle: c.PathStyle,
		KeyID: c.KeyID, Secret: c.Secret, Token: c.Token}, nil
}

// findObjects finds the runs that names and patterns match in the store, which is object storage.
func findObjects(ctx context.Context, a *app, names []string) ([]queries.Run, error) {
	s, err := a.objectStore()
	if err != nil {
		return nil, err
	}
	found, err := s.Find(ctx, names, warnLeftOut(a))
	if err != nil {
		return nil, err
	}
	var runs []queries.Run
	for _, f := range found {
		runs = append(runs, queries.Run{Name: f.Name, Dir: s.Place(f.Name), Manifest: f.Manifest})
	}
	return runs, nil
}

// listRuns lists the runs of the store, a folder or object storage.
func (a *app) listRuns(ctx context.Context) ([]writer.Info, error) {
	if !objects.Is(a.storeDir()) {
		return writer.List(a.storeDir())
	}
	s, err := a.objectStore()
	if err != nil {
		return nil, err
	}
	found, err := s.List(ctx)
	var infos []writer.Info
	for _, f := range found {
		infos = append(infos, writer.Info{Name: f.Name, Dir: s.Place(f.Name), Manifest: f.Manifest, Err: f.Err})
	}
	return infos, err
}
