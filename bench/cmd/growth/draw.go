package main

import (
	"image/color"
	"math"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A panel is one plot of a figure.
type panel struct {
	title  string
	points []point
}

const (
	columns     = 3
	panelWidth  = 9 * vg.Centimeter
	panelHeight = 6 * vg.Centimeter
)

// drawPanels draws a figure, three panels in a row.
func drawPanels(unit string, panels []panel) (*vgsvg.Canvas, error) {
	rowCount := (len(panels) + columns - 1) / columns
	canvas := vgsvg.New(columns*panelWidth, vg.Length(rowCount)*panelHeight)
	tiles := draw.Tiles{
		Rows: rowCount, Cols: columns,
		PadX: vg.Millimeter * 4, PadY: vg.Millimeter * 4, PadTop: vg.Millimeter * 2, PadBottom: vg.Millimeter * 2,
		PadLeft: vg.Millimeter * 2, PadRight: vg.Millimeter * 4,
	}
	whole := draw.New(canvas)
	for i, panel := range panels {
		p, err := panel.plot(unit)
		if err != nil {
			return nil, err
		}
		p.Draw(tiles.At(whole, i%columns, i/columns))
	}
	return canvas, nil
}

// writeFigure draws a figure into a file.
func writeFigure(path, unit string, panels []panel) error {
	canvas, err := drawPanels(unit, panels)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(file)
	return firstError(err, file.Close())
}

// plot draws both sides over the number of objects, both axes logarithmic, so
// that what is flat does not grow and what is ten times dearer is as far apart
// everywhere.
func (p panel) plot(unit string) (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text = p.title
	out.X.Label.Text = "objects"
	out.Y.Label.Text = unit
	out.X.Scale, out.Y.Scale = plot.LogScale{}, plot.LogScale{}
	out.X.Tick.Marker = plot.LogTicks{Prec: -1}
	out.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	out.Legend.Top, out.Legend.Left = true, true
	out.Add(plotter.NewGrid())
	lowest, highest := math.Inf(1), 0.0
	for _, side := range []struct {
		name  string
		color color.Color
	}{{"theirs", color.RGBA{R: 200, G: 80, B: 40, A: 255}}, {"ours", color.RGBA{R: 20, G: 90, B: 180, A: 255}}} {
		var xys plotter.XYs
		for _, at := range p.points {
			if at.side == side.name {
				cost := max(at.cost, 0.01) // there is no logarithm of nothing
				xys = append(xys, plotter.XY{X: float64(at.n), Y: cost})
				lowest, highest = min(lowest, cost), max(highest, cost)
			}
		}
		if len(xys) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(xys)
		if err != nil {
			return nil, err
		}
		line.Color, dots.Color = side.color, side.color
		line.Width, dots.Shape = vg.Points(1.5), draw.CircleGlyph{}
		out.Add(line, dots)
		out.Legend.Add(side.name, line, dots)
	}
	if highest > 0 {
		// Whole decades, so that every axis has ticks with numbers.
		out.Y.Min = math.Pow(10, math.Floor(math.Log10(lowest)))
		out.Y.Max = math.Pow(10, math.Ceil(math.Log10(highest*1.2)))
	}
	return out, nil
}
