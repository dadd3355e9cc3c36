// Command gendocs writes docs/SCHEMA.md: the tables of a run, by package schema, and the rules that hold in it, by
// package check. Its argument is the path of the file.
package main

import (
	"log"
	"os"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/check"
)

func main() {
	log.SetFlags(0)
	if err := os.WriteFile(os.Args[1], []byte(schema.Markdown()+check.Markdown()), 0o644); err != nil {
		log.Fatal(err)
	}
}
