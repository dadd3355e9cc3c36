// Command gendocs writes docs/reference/machines.md: the keys of machine files, by package models. Its argument is the
// path of the file.
package main

import (
	"log"
	"os"

	"github.com/commq/commq/models"
)

func main() {
	log.SetFlags(0)
	if err := os.WriteFile(os.Args[1], []byte(models.Markdown()), 0o644); err != nil {
		log.Fatal(err)
	}
}
