package report

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/plot"
)

// Limits of matrices: cells with a tooltip on a page, cells that each matrix may have even if there are many, and
// cells in a row. In larger matrices a cell represents several ranks.
const (
	mostCells  = 16384
	leastPer   = 256
	mostAcross = 512
)

// grid collects the rows of a matrix: sums over blocks of ranks.
type grid struct {
	ranks, block, n int
	row, column     int
	value           int   // index in columns: the value that is drawn
	at              []int // summed columns, in the order of their names
	names, units    []string
	cells           map[int]*gridCell
}

type gridCell struct {
	pairs     int64
	sum, most []int64
}

func newGrid(q *queries.Query, ranks int) *grid {
	g := &grid{ranks: max(ranks, 1), row: find(q.Columns, q.Plot.Row), column: find(q.Columns, q.Plot.Column),
		cells: map[int]*gridCell{}}
	for i, c := range q.Columns {
		if i != g.row && i != g.column && (c.Type == "BIGINT" || c.Type == "INTEGER") {
			g.at = append(g.at, i)
		}
	}
	slices.SortFunc(g.at, func(a, b int) int { return strings.Compare(q.Columns[a].Name, q.Columns[b].Name) })
	for i, at := range g.at {
		c := q.Columns[at]
		g.names, g.units = append(g.names, c.Name), append(g.units, c.Unit)
		if c.Name == q.Plot.Value {
			g.value = i
		}
	}
	g.block = (g.ranks + mostAcross - 1) / mostAcross
	g.n = (g.ranks + g.block - 1) / g.block
	return g
}

func (g *grid) add(row []any) error {
	src, ok1 := number(row, g.row)
	dst, ok2 := number(row, g.column)
	if !ok1 || !ok2 || src < 0 || dst < 0 || int(src) >= g.ranks || int(dst) >= g.ranks {
		return fmt.Errorf("row %v has no place in a matrix of %d ranks", row, g.ranks)
	}
	c := g.cell(int(src)/g.block*g.n + int(dst)/g.block)
	c.pairs++
	for i, at := range g.at {
		x, ok := row[at].(int64)
		if small, is := row[at].(int32); is {
			x, ok = int64(small), true
		}
		if !ok {
			continue
		}
		c.sum[i] += x
		c.most[i] = max(c.most[i], x)
	}
	return nil
}

func (g *grid) cell(i int) *gridCell {
	c := g.cells[i]
	if c == nil {
		c = &gridCell{sum: make([]int64, len(g.at)), most: make([]int64, len(g.at))}
		g.cells[i] = c
	}
	return c
}

// shrink doubles the block size until there are up to most cells.
func (g *grid) shrink(most int) {
	for len(g.cells) > most && g.n > 1 {
		old, n := g.cells, g.n
		g.block *= 2
		g.n = (g.ranks + g.block - 1) / g.block
		g.cells = map[int]*gridCell{}
		for i, from := range old {
			to := g.cell(i/n/2*g.n + i%n/2)
			to.pairs += from.pairs
			for k := range from.sum {
				to.sum[k] += from.sum[k]
				to.most[k] = max(to.most[k], from.most[k])
			}
		}
	}
}

// cellData is the data of a matrix for the page's script.
type cellData struct {
	ID   string
	JSON json.RawMessage
}

// matrix is the picture of a matrix: an image of the cells, with axes.
type matrix struct {
	Run, Value, Label, Data string
	Down, Across            string
	Image                   template.URL
	Ticks                   []tick
	Least, Most             string // the ends of the scale, whose name is Value
	Note                    string
	// The position of the image, for the template.
	Left, Top, Side, Cell float64
	// Fine is true if the image may be drawn with fewer dots than cells. The dots must then be mixed, or some cells
	// disappear.
	Fine bool
}

// tick is a number at an axis.
type tick struct {
	At   float64
	Text string
}

// Lengths in a matrix; the page scales it.
const (
	matrixLeft = 52
	matrixTop  = 6
	matrixSide = 400
)

func (b *builder) matrix(q *queries.Query, a answer) *matrix {
	g := a.grid
	g.shrink(max(mostCells/len(b.inputs), leastPer))
	m := &matrix{Run: Printable(a.run), Down: axis(q.Plot.Row), Across: axis(q.Plot.Column),
		Left: matrixLeft, Top: matrixTop, Side: matrixSide, Cell: matrixSide / float64(g.n), Fine: g.n > leastDots}
	least, most := g.extent()
	m.Image = g.image(least, most)
	m.Data = b.data(g)
	value := q.Columns[find(q.Columns, q.Plot.Value)]
	m.Value, m.Least, m.Most = value.Words(), "none", amount(float64(most), value)
	if most == 0 {
		m.Value, m.Most = "", "no "+m.Value
	}
	m.Label = fmt.Sprintf("Matrix of %s: %s down, %s across, %d ranks, at most %s for a pair", value.Words(), m.Down,
		m.Across, g.ranks, m.Most)
	if plot.Logarithmic(least, most) {
		m.Least = amount(float64(least), value)
		m.Value += ", logarithmic"
	}
	if g.block > 1 {
		m.Note = fmt.Sprintf("A cell is %d by %d ranks, as dark as its busiest pair.", g.block, g.block)
	}
	for rank := 0; rank < g.ranks; rank += rankStep(g.ranks) {
		m.Ticks = append(m.Ticks, tick{(float64(rank/g.block) + 0.5) * m.Cell, fmt.Sprint(rank)})
	}
	return m
}

// axis names a column of ranks at an axis.
func axis(column string) string {
	switch column {
	case "src":
		return "source"
	case "dst":
		return "destination"
	}
	return words(column)
}

// rankStep returns the distance between labelled ranks: a power of two, since most numbers of ranks are.
func rankStep(ranks int) int {
	step := 1
	for ranks/step > 8 {
		step *= 2
	}
	return step
}

// lightest is the opacity of the smallest value above 0.
const lightest = 0.12

// leastDots is the least number of dots in a matrix row on a small screen.
const leastDots = 256

// printDots is the least number of dots in an image row: printers and PDF viewers smear larger dots.
const printDots = 768

// extent returns the least value above 0 and the greatest one; 0 if there is none.
func (g *grid) extent() (least, most int64) {
	for _, c := range g.cells {
		v := c.most[g.value]
		if v > 0 && (least == 0 || v < least) {
			least = v
		}
		most = max(most, v)
	}
	return least, most
}

// image returns the cells as a PNG for embedding: more is more opaque, zero is transparent.
func (g *grid) image(least, most int64) template.URL {
	times := max((printDots+g.n-1)/g.n, 1)
	log := plot.Logarithmic(least, most)
	shades := color.Palette{color.NRGBA{}} // only the used shades, to keep the file small
	at := map[uint8]uint8{}
	img := image.NewPaletted(image.Rect(0, 0, g.n*times, g.n*times), nil)
	for _, i := range slices.Sorted(maps.Keys(g.cells)) {
		v := g.cells[i].most[g.value]
		if v <= 0 {
			continue
		}
		f := float64(v) / float64(most)
		if log {
			f = math.Log(float64(v)/float64(least)) / math.Log(float64(most)/float64(least))
		}
		// from 31: with zero at most 226 shades
		alpha := uint8(math.Round(255 * (lightest + (1-lightest)*f)))
		if _, ok := at[alpha]; !ok {
			at[alpha] = uint8(len(shades))
			shades = append(shades, color.NRGBA{A: alpha})
		}
		for y := i / g.n * times; y < (i/g.n+1)*times; y++ {
			row := img.Pix[y*img.Stride+i%g.n*times:][:times]
			for x := range row {
				row[x] = at[alpha]
			}
		}
	}
	img.Palette = shades
	var b bytes.Buffer
	e := png.Encoder{CompressionLevel: png.BestCompression}
	if err := e.Encode(&b, img); err != nil {
		panic(err) // writing to a buffer cannot fail
	}
	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes()))
}

// data stores the cells in the page and returns their id. Matrices with the same cells share one id.
func (b *builder) data(g *grid) string {
	at := make([]int, 0, len(g.cells))
	for i := range g.cells {
		at = append(at, i)
	}
	slices.Sort(at)
	flat := []int64{}
	for _, i := range at {
		c := g.cells[i]
		flat = append(append(flat, int64(i)), c.sum...)
		if g.block > 1 {
			flat = append(append(flat, c.pairs), c.most...)
		}
	}
	text, err := json.Marshal(struct {
		Ranks int      `json:"ranks"`
		Block int      `json:"block"`
		N     int      `json:"n"`
		Names []string `json:"names"`
		Cells []int64  `json:"cells"`
	}{g.ranks, g.block, g.n, g.names, flat})
	if err != nil {
		panic(err) // integers and column names always marshal
	}
	for _, d := range b.report.Data {
		if bytes.Equal(d.JSON, text) {
			return d.ID
		}
	}
	d := cellData{fmt.Sprintf("cells-%d", len(b.report.Data)), text}
	b.report.Data = append(b.report.Data, d)
	return d.ID
}
