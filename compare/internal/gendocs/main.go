// Command gendocs writes docs/reference/rules.md: the rules and measures of commq check, by package compare. Its
// argument is the path of the file.
package main

import (
	"log"
	"os"

	"github.com/commq/commq/compare"
)

func main() {
	log.SetFlags(0)
	if err := os.WriteFile(os.Args[1], []byte(compare.Markdown()), 0o644); err != nil {
		log.Fatal(err)
	}
}
