package theme

import (
	"strconv"
	"strings"
)

// Color is a color without transparency.
type Color struct{ R, G, B uint8 }

// blend returns the color of c with an alpha channel over another color.
func (c Color) blend(alpha uint8, over Color) Color {
	mix := func(a, b uint8) uint8 {
		return uint8((int(a)*int(alpha) + int(b)*(255-int(alpha))) / 255)
	}
	return Color{mix(c.R, over.R), mix(c.G, over.G), mix(c.B, over.B)}
}

// parseColor reads #RGB, #RGBA, #RRGGBB and #RRGGBBAA.
func parseColor(text string) (c Color, alpha uint8, ok bool) {
	digits, found := strings.CutPrefix(strings.TrimSpace(text), "#")
	if !found {
		return c, 0, false
	}
	if len(digits) == 3 || len(digits) == 4 {
		var b strings.Builder
		for i := range len(digits) {
			b.WriteString(digits[i:i+1] + digits[i:i+1])
		}
		digits = b.String()
	}
	if len(digits) == 6 {
		digits += "ff"
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || len(digits) != 8 {
		return c, 0, false
	}
	return Color{uint8(n >> 24), uint8(n >> 16), uint8(n >> 8)}, uint8(n), true
}

// levels are the intensities of the color cube of xterm.
var levels = [6]int{0, 95, 135, 175, 215, 255}

// Index returns the number of the color among the 256 of xterm that is nearest, 16 at
// least: the first sixteen look different in every terminal. The brightest, 231 and 252 to
// 255, become 252, which is easier to read.
func (c Color) Index() int {
	nearest := func(v uint8) int {
		best := 0
		for i, l := range levels {
			if diff(int(v), l) < diff(int(v), levels[best]) {
				best = i
			}
		}
		return best
	}
	r, g, b := nearest(c.R), nearest(c.G), nearest(c.B)
	index := 16 + 36*r + 6*g + b
	distance := c.distance(levels[r], levels[g], levels[b])
	gray := min(23, max(0, ((int(c.R)+int(c.G)+int(c.B))/3-3)/10))
	if v := 8 + 10*gray; c.distance(v, v, v) < distance {
		index = 232 + gray
	}
	if index == 231 || index >= 252 {
		index = 252
	}
	return index
}

func (c Color) distance(r, g, b int) int {
	return diff(int(c.R), r) + diff(int(c.G), g) + diff(int(c.B), b)
}

// diff returns the square of the difference.
func diff(a, b int) int { return (a - b) * (a - b) }
