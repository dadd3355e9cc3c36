// Command gendocs writes the tables of docs/COMPAT.md, between the comments that mark them. Its argument is the path of
// the file.
package main

import (
	"log"
	"os"
	"strings"

	"github.com/commq/commq/capture/shim/abi"
)

// The comments before and after the tables.
const (
	begin = "<!-- The tables of capture/shim/abi: go generate ./capture/shim/abi -->\n"
	end   = "<!-- The end of these tables -->\n"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("gendocs: ")
	page, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		log.Fatalf("%s: want the tables between the lines\n%s%s", os.Args[1], begin, end)
	}
	if err := os.WriteFile(os.Args[1], []byte(before+begin+"\n"+abi.Markdown()+"\n"+end+after), 0o644); err != nil {
		log.Fatal(err)
	}
}
