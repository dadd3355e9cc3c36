package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/shim"
)

func newCaptureAPICommand(a *app) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "api [file]",
		Short: "Print or write the files with which a program marks its phases and buffers",
		Long: `api prints commq.h (C and C++) or commq.f90 (a Fortran module); with --dir it writes both to a folder.
With them a program can name its phases (commq_mark) and record the hash of a buffer that it does not send
(commq_send_to_self). There is nothing to link: without the capture library both calls do nothing.`,
		Example: `  commq capture api --dir include
  commq capture api commq.h > commq.h`,
		Args:              wantArgs(0, 1, "at most a file"),
		ValidArgsFunction: completeOnce(shim.APINames...),
		RunE: func(c *cobra.Command, args []string) error {
			if (dir == "") == (len(args) == 0) {
				return errors.New("capture api: name a file to print, or a folder with --dir")
			}
			if dir != "" {
				return writeAPI(a, dir)
			}
			text, err := shim.API(args[0])
			if err == nil {
				_, err = a.stdout.Write(text)
			}
			return err
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "`FOLDER` to write the files to")
	a.writes(c)
	completeFolders(c, "dir")
	return c
}

// writeAPI writes the files and prints their paths. It writes none if one is there, without --replace.
func writeAPI(a *app, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("capture api: make the folder: %w", err)
	}
	for _, name := range shim.APINames {
		if err := a.checkNew(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("capture api: %w", err)
		}
	}
	for _, name := range shim.APINames {
		text, err := shim.API(name)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("capture api: %w", err)
		}
		fmt.Fprintln(a.stdout, path)
	}
	return nil
}
