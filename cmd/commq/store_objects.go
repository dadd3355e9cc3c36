package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/writer"
	"github.com/commq/commq/writer/objects"
)

func newStorePushCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "push s3://BUCKET/PREFIX [RUN...]",
		Short: "Copy runs into object storage",
		Long: `push copies runs of the store into a bucket of a service that speaks S3. Without RUN it is all of them. A run's manifest is put last: what
is half there is no run. A run that is there with the same manifest is left alone, another of its name is replaced.

commq query, sql, runs list and runs show read runs there, with --store s3://BUCKET/PREFIX; for all else store pull brings them back.

The service is that of $AWS_ENDPOINT_URL (default: Amazon's in $AWS_REGION); keys come from $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, or the
profile $AWS_PROFILE of ~/.aws/credentials.`,
		Example: `  export AWS_ENDPOINT_URL=https://s3.example.org
  commq store push s3://jobs/2026-11
  commq store push s3://jobs/2026-11 bt.C.64 'sp.A.*'
  commq query density --store s3://jobs/2026-11 --run bt.C.64`,
		Args:              wantArgs(1, anyNumber, "s3://BUCKET/PREFIX and runs"),
		ValidArgsFunction: completeAfterStore(a),
		RunE: func(c *cobra.Command, args []string) error {
			return runStorePush(c.Context(), a, args[0], args[1:])
		},
	}
}

func newStorePullCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "pull s3://BUCKET/PREFIX [RUN...]",
		Short: "Copy runs from object storage into the store",
		Long: `pull copies runs of a bucket into the store, a folder. Without RUN it is all of them. A run appears in the store whole or not at all; one whose
name is taken there by the same run is left alone. Service and keys are those of store push.`,
		Example: `  commq store pull s3://jobs/2026-11 bt.C.64
  commq store pull s3://jobs/2026-11 --store /scratch/runs`,
		Args:              wantArgs(1, anyNumber, "s3://BUCKET/PREFIX and runs"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			return runStorePull(c.Context(), a, args[0], args[1:])
		},
	}
}

// completeAfterStore completes runs behind the first argument, which nobody can guess.
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
		return fmt.Errorf("store push: %w", err)
	}
	runs, err := namedOrAll(a, names)
	if err != nil {
		return fmt.Errorf("store push: %w", err)
	}
	already := 0
	for _, r := range runs {
		pushed, err := s.Push(ctx, r.Dir, r.Name)
		if err != nil {
			return fmt.Errorf("store push: %w", err)
		}
		if !pushed {
			already++
		}
	}
	a.note("%s in %s, %d of them before", counted(int64(len(runs)), "run"), s.URL, already)
	return nil
}

func runStorePull(ctx context.Context, a *app, from string, names []string) error {
	s, err := objects.Open(from)
	if err != nil {
		return fmt.Errorf("store pull: %w", err)
	}
	if len(names) == 0 {
		names = []string{"*"}
	}
	runs, err := objectsNamed(ctx, a, s, names)
	if err != nil {
		return fmt.Errorf("store pull: %w", err)
	}
	already := 0
	for _, r := range runs {
		if same, err := hasRun(a.storeDir(), r); err != nil {
			return fmt.Errorf("store pull: %w", err)
		} else if same {
			already++
			continue
		}
		if err := s.Pull(ctx, r.Name, a.storeDir()); err != nil {
			return fmt.Errorf("store pull: %w", err)
		}
	}
	a.note("%s of %s in %s, %d of them before", counted(int64(len(runs)), "run"), s.URL, a.storeDir(), already)
	return nil
}

// hasRun says whether the store has the run, by name and digest.
func hasRun(store string, r queries.Run) (bool, error) {
	infos, err := writer.List(store)
	if err != nil {
		return false, err
	}
	for _, info := range infos {
		if info.Name == r.Name {
			return info.Err == nil && info.Manifest.Digest == r.Manifest.Digest, nil
		}
	}
	return false, nil
}

// objectStore is the store where it is object storage.
func (a *app) objectStore() (*objects.Store, error) { return objects.Open(a.storeDir()) }

// objectAccess is how DuckDB reaches the store where it is object storage; else nil.
func (a *app) objectAccess() (*queries.Objects, error) {
	if !objects.Is(a.storeDir()) {
		return nil, nil
	}
	s, err := a.objectStore()
	if err != nil {
		return nil, err
	}
	c := s.Access
	return &queries.Objects{Endpoint: c.Endpoint, Region: c.Region, TLS: c.TLS, PathStyle: c.PathStyle, KeyID: c.KeyID, Secret: c.Secret, Token: c.Token}, nil
}

// findObjects finds the runs named, or meant by a pattern, in the store, which is object storage.
func findObjects(ctx context.Context, a *app, names []string) ([]queries.Run, error) {
	s, err := a.objectStore()
	if err != nil {
		return nil, err
	}
	return objectsNamed(ctx, a, s, names)
}

func objectsNamed(ctx context.Context, a *app, s *objects.Store, names []string) ([]queries.Run, error) {
	var runs []queries.Run
	seen := map[string]bool{}
	add := func(r queries.Run) {
		if !seen[r.Name] {
			runs = append(runs, r)
		}
		seen[r.Name] = true
	}
	var all []objects.Info
	for _, name := range names {
		if writer.CheckName(name) == nil {
			m, err := s.Manifest(ctx, name)
			if errors.Is(err, os.ErrNotExist) {
				err = fmt.Errorf("no run %q in %s; commq runs list --store %[2]s names the runs", name, s.URL)
			}
			if err != nil {
				return nil, err
			}
			add(queries.Run{Name: name, Dir: s.Place(name), Manifest: m})
			continue
		}
		if !strings.ContainsAny(name, "*?[") {
			return nil, fmt.Errorf("no run %q in %s: that is no name of a run", name, s.URL)
		}
		if all == nil {
			var err error
			if all, err = s.List(ctx); err != nil {
				return nil, err
			}
		}
		found := false
		for _, info := range all {
			fits, err := path.Match(name, info.Name)
			if err != nil {
				return nil, fmt.Errorf("runs %q: %w; want * ? or [a-z]", name, err)
			}
			if !fits {
				continue
			}
			if info.Err != nil {
				a.warn("left out: %v", info.Err)
				continue
			}
			found = true
			add(queries.Run{Name: info.Name, Dir: s.Place(info.Name), Manifest: info.Manifest})
		}
		if !found {
			return nil, fmt.Errorf("no run fits %q in %s; commq runs list --store %[2]s names the runs", name, s.URL)
		}
	}
	return runs, nil
}

// listRuns lists the runs of the store, in a folder or in object storage.
func (a *app) listRuns(ctx context.Context) ([]writer.Info, error) {
	if !objects.Is(a.storeDir()) {
		return writer.List(a.storeDir())
	}
	s, err := a.objectStore()
	if err != nil {
		return nil, err
	}
	all, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	var infos []writer.Info
	for _, o := range all {
		infos = append(infos, writer.Info{Name: o.Name, Dir: s.Place(o.Name), Manifest: o.Manifest, Err: o.Err})
	}
	return infos, nil
}
