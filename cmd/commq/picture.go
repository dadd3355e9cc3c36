package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/commq/commq/queries/plot"
)

// pictureOptions are the flags of every command that draws.
type pictureOptions struct {
	plot    string // --plot
	theme   string // --theme
	colours string // --color-scale, of matrices
}

// pictureFlags adds the flags; usage is the help of --plot.
func (o *pictureOptions) pictureFlags(c *cobra.Command, usage string) {
	c.Flags().StringVar(&o.plot, "plot", "", usage)
	c.Flags().StringVar(&o.theme, "theme", plot.Themes()[0], "`THEME` of the picture: light, for paper, or dark")
	completeFiles(c, "plot", plot.Formats()...)
	complete(c, "theme", plot.Themes()...)
}

// colourFlag adds the flag for the colours of matrices.
func (o *pictureOptions) colourFlag(c *cobra.Command) {
	c.Flags().StringVar(&o.colours, "color-scale", plot.ColourScales()[0], "colours of the picture by the value "+
		"(`linear`), "+
		"by its logarithm (log), or by its logarithm where values differ a hundredfold (auto)")
	complete(c, "color-scale", plot.ColourScales()...)
}

// checkPicture validates the flags.
func (o *pictureOptions) checkPicture() error {
	if o.theme == "" { // the command draws nothing
		return nil
	}
	if err := oneOf("theme", o.theme, plot.Themes()...); err != nil {
		return err
	}
	if o.colours != "" {
		if err := oneOf("color-scale", o.colours, plot.ColourScales()...); err != nil {
			return err
		}
	}
	if o.plot == "" {
		return nil
	}
	return plot.Known(o.plot)
}

// writePicture draws into the file of --plot.
func (o *pictureOptions) writePicture(d plot.Drawing) error {
	how := plot.Options{Format: plot.FormatOf(o.plot), Theme: o.theme, Colours: o.colours}
	return writeFile(o.plot, func(w io.Writer) error { return d.Draw(w, how) })
}
