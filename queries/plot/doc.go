// Package plot draws answers as PNG, SVG or PDF: communication matrices as in Riesen's figures (source down,
// destination across, darker is more, white is zero), bars, lines, points, bands and heat maps.
//
// The files, in reading order:
//
//	draw.go     Drawing, what every picture can do; formats, fonts, PNG
//	theme.go    Options, and the colours of everything
//	unit.go     the units of numbers: ns, bytes, rates
//	matrix.go   Matrix: a cell for each pair of ranks
//	heatmap.go  HeatMap: a cell for each pair of values
//	timeline.go Timeline: what every rank does over time, with messages
//	chart.go    Chart: bars, lines, points and bands, and where its parts are; axis.go has the axes, series.go draws the
//	            series, bands.go the bands of ranks
package plot
