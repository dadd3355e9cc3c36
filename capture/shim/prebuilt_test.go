package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without a program that tells, the launcher does, and without one it is the oldest.
func TestTheLauncherTellsTheABI(t *testing.T) {
	for _, c := range []struct{ library, says, want string }{
		{OpenMPI, "mpirun (Open MPI) 5.0.7", "openmpi-5"},
		{OpenMPI, "mpirun (Open MPI) 4.1.4", "openmpi-4"},
		{OpenMPI, "mpirun (Open MPI) 6.0.0", "openmpi-5"},
		{OpenMPI, "mpirun (OpenRTE) 5.0.0", "openmpi-5"},
		{OpenMPI, "HYDRA build details:", "openmpi-4"},
		{MPICH, "mpirun (Open MPI) 5.0.7", "mpich-3"},
		{MPICH, "HYDRA build details:\n    Version:        5.0.2", "mpich-4"},
		{MPICH, "Intel(R) MPI Library for Linux* OS, Version 2021.19", "mpich-3"},
		{MPICH, "HYDRA build details:\n    Version:        4.0.2", "mpich-4"},
		{MPICH, "HYDRA build details:\n    Version:        3.4.3", "mpich-3"},
	} {
		folder := t.TempDir()
		script := "#!/bin/sh\necho '" + c.says + "'\n"
		for _, name := range []string{"mpirun", "mpiexec"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", folder)
		got, err := Choose(t.Context(), BuildOptions{Library: c.library, Mpicc: NoMpicc, Program: "./script"})
		if err != nil || got.ABI.Name != c.want || got.ABI.Library != c.library {
			t.Errorf("%s, %q: %+v, %v; want %s", c.library, c.says, got, err, c.want)
		}
	}
	if _, err := Choose(t.Context(), BuildOptions{Library: "lam", Mpicc: NoMpicc}); err == nil {
		t.Error("an ABI of LAM")
	}
}

// A commq that was not released brings no shim, and says what to do.
func TestNoPrebuilt(t *testing.T) {
	if len(Prebuilt()) > 0 {
		t.Fatal("this one brings shims")
	}
	_, err := Build(t.Context(), BuildOptions{Library: MPICH, Mpicc: NoMpicc, Cache: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "--mpicc none: this commq brings no capture library") {
		t.Error(err)
	}
	t.Setenv("PATH", t.TempDir())
	_, err = Build(t.Context(), BuildOptions{Library: MPICH, Cache: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "no compiler wrapper of MPICH in $PATH") {
		t.Error(err)
	}
}
