package main

import (
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

// emitTables runs gentables, which imports schema and so can only be compiled once calls_gen.go is there.
func emitTables(dir string) {
	cmd := exec.Command("go", "run", "./internal/gentables", dir)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if dir != "." {
		cmd.Args[3], _ = filepath.Abs(dir)
	}
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
}
