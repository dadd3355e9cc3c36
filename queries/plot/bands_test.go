package plot

import (
	"image/color"
	"strings"
	"testing"
)

// TestBands looks at the colours of two ranks' bands: rank 0 on top, later bands over those before, a short one a
// pixel wide at least.
func TestBands(t *testing.T) {
	c := &Chart{Kind: "bands", X: Axis{Name: "time", Unit: "ns"}, Y: Axis{Name: "rank"}, Series: "phase",
		Order: []string{"solve", "norm"}, Greys: []string{"outside"}}
	for _, v := range []Value{
		{Series: "outside", Y: 0, X: 0, To: 7000}, {Series: "solve", Y: 0, X: 1000, To: 3000},
		{Series: "outside", Y: 1, X: 0, To: 9000}, {Series: "norm", Y: 1, X: 5000, To: 5001},
		{Series: "solve", Y: 1, X: 6000, To: 9000},
	} {
		c.Add(v)
	}
	img, p := picture(t, c), c.layOut(&light)
	grey, white := color.RGBA{225, 225, 225, 255}, color.RGBA{255, 255, 255, 255}
	solve, norm := color.RGBAModel.Convert(p.colour(0)).(color.RGBA), color.RGBAModel.Convert(p.colour(1)).(color.RGBA)
	for _, x := range []struct {
		at, rank float64
		want     color.RGBA
	}{{500, 0, grey}, {2000, 0, solve}, {4000, 0, grey}, {8000, 0, white}, {2000, 1, grey}, {5000.5, 1, norm},
		{8000, 1, solve}, {2000, 0.5, white}} {
		if got := colourAt(img, p, x.at, x.rank); got != x.want {
			t.Errorf("rank %g at %g is %v, want %v", x.rank, x.at, got, x.want)
		}
	}
	var b strings.Builder
	if err := c.Draw(&b, Options{Format: "svg"}); err != nil {
		t.Fatal(err)
	}
	if svg := b.String(); !strings.Contains(svg, ">solve<") || !strings.Contains(svg, ">outside<") ||
		!strings.Contains(svg, ">rank<") {
		t.Error("the legend or an axis lacks its text")
	}
}

// TestBandsOfManyRanks draws of every 3 of 1,000 ranks the first, and says so.
func TestBandsOfManyRanks(t *testing.T) {
	c := &Chart{Kind: "bands", Note: "cg", X: Axis{Name: "time", Unit: "ns"}, Y: Axis{Name: "rank"}}
	for r := range 1000 {
		c.Add(Value{Series: "solve", Y: float64(r), X: 10, To: 90})
	}
	p := c.layOut(&light)
	if len(p.values) != 334 || p.note != "cg; of every 3 ranks the first" {
		t.Errorf("%d bands, note %q", len(p.values), p.note)
	}
	if got := colourAt(picture(t, c), p, 50, 500); got != color.RGBAModel.Convert(p.colour(0)).(color.RGBA) {
		t.Errorf("rank 500 is %v", got)
	}
	picture(t, &Chart{Kind: "bands"}) // without bands
}
