// Command gen-dim writes a trace of Dimemas: a periodic 5-point stencil on a square of ranks, each step a burst, a
// nonblocking receive from and send to each neighbour, a wait for each receive, and every tenth step an allreduce.
//
//	go run ./bench/gen-dim SIDE RECORDS > stencil.dim
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("gen-dim SIDE RECORDS")
	}
	side, err := strconv.Atoi(os.Args[1])
	records, err2 := strconv.Atoi(os.Args[2])
	if err != nil || err2 != nil || side < 3 {
		log.Fatal("gen-dim SIDE RECORDS: whole numbers, a side of at least 3")
	}
	ranks := side * side
	steps := records * 10 / (ranks * 131)
	var body bytes.Buffer
	fmt.Fprintf(&body, "d:1:1:%d", ranks)
	for r := range ranks {
		fmt.Fprintf(&body, ":%d", r)
	}
	body.WriteString("\n")
	starts := make([]int, ranks)
	for r := range ranks {
		starts[r] = body.Len()
		x, y := r%side, r/side
		neighbours := [4]int{y*side + (x+1)%side, y*side + (x+side-1)%side, (y+1)%side*side + x,
			(y+side-1)%side*side + x}
		for s := range steps {
			fmt.Fprintf(&body, "1:%d:0:%.9f\n", r, 1e-4+float64((r*7919+s*104729)%1000)*1e-8)
			for k, n := range neighbours {
				fmt.Fprintf(&body, "3:%d:0:%d:-1:8192:%d:1:1\n", r, n, k^1)
			}
			for k, n := range neighbours {
				fmt.Fprintf(&body, "2:%d:0:%d:-1:8192:%d:1:2\n", r, n, k)
			}
			for k, n := range neighbours {
				fmt.Fprintf(&body, "3:%d:0:%d:-1:8192:%d:1:2\n", r, n, k^1)
			}
			if s%10 == 9 {
				fmt.Fprintf(&body, "10:%d:0:11:1:0:0:8:8:1\n", r)
			}
		}
		fmt.Fprintf(&body, "1:%d:0:0.0\n", r)
	}
	threads := strings.TrimSuffix(strings.Repeat("1,", ranks), ",")
	head := func(offset int) string {
		return fmt.Sprintf("#DIMEMAS:\"stencil\":1,%012d:%d(%s),1,0,0\n", offset, ranks, threads)
	}
	first := len(head(0))
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprint(out, head(first+body.Len()))
	out.Write(body.Bytes())
	for r, at := range starts {
		fmt.Fprintf(out, "s:%d:%d\n", r, first+at)
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}
