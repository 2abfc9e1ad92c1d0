package flower

import (
	"math/rand/v2"
	"strings"
)

const (
	side   = 8 // of a picture, in pixels
	pixels = side * side
	digits = 10
)

// drawn are the digits as they are meant to look.
var drawn = [digits]string{
	`..####..
	 .##..##.
	 .##..##.
	 .##..##.
	 .##..##.
	 .##..##.
	 .##..##.
	 ..####..`,
	`...##...
	 ..###...
	 .####...
	 ...##...
	 ...##...
	 ...##...
	 ...##...
	 .######.`,
	`..####..
	 .##..##.
	 .....##.
	 ....##..
	 ...##...
	 ..##....
	 .##.....
	 .######.`,
	`..####..
	 .##..##.
	 .....##.
	 ...###..
	 .....##.
	 .....##.
	 .##..##.
	 ..####..`,
	`....##..
	 ...###..
	 ..####..
	 .##.##..
	 .######.
	 ....##..
	 ....##..
	 ....##..`,
	`.######.
	 .##.....
	 .##.....
	 .#####..
	 .....##.
	 .....##.
	 .##..##.
	 ..####..`,
	`..####..
	 .##.....
	 .##.....
	 .#####..
	 .##..##.
	 .##..##.
	 .##..##.
	 ..####..`,
	`.######.
	 .....##.
	 ....##..
	 ....##..
	 ...##...
	 ...##...
	 ..##....
	 ..##....`,
	`..####..
	 .##..##.
	 .##..##.
	 ..####..
	 ..####..
	 .##..##.
	 .##..##.
	 ..####..`,
	`..####..
	 .##..##.
	 .##..##.
	 .##..##.
	 ..#####.
	 .....##.
	 ....##..
	 ..###...`,
}

// picture is one of a digit, its pixels from 0 to 1.
type picture struct {
	pixels [pixels]float32
	digit  int
}

// meant is the picture of a digit as it is meant to look.
func meant(digit int) picture {
	p := picture{digit: digit}
	i := 0
	for _, c := range drawn[digit] {
		switch c {
		case '#':
			p.pixels[i] = 1
			i++
		case '.':
			i++
		}
	}
	return p
}

// write draws a picture of a digit in somebody's hand: fainter or darker, some a pixel to the side, with spots.
func write(r *rand.Rand, digit int) picture {
	clean := meant(digit)
	dx := 0
	if r.IntN(4) == 0 {
		dx = 1 - 2*r.IntN(2)
	}
	ink := 0.7 + 0.3*r.Float32()
	p := picture{digit: digit}
	for y := range side {
		for x := range side {
			if from := x - dx; from >= 0 && from < side {
				p.pixels[y*side+x] = ink * clean.pixels[y*side+from]
			}
			p.pixels[y*side+x] = min(1, max(0, p.pixels[y*side+x]+0.12*float32(r.NormFloat64())))
		}
	}
	return p
}

// parties is how many there are, each with the pictures of one half of the digits.
const parties = 2

// belonging draws the pictures of a party, the first of which is 0: all are of its own digits, and as many of each.
// Some are printed, not written.
func belonging(r *rand.Rand, party, count int) []picture {
	const own = digits / parties
	list := make([]picture, count)
	for i := range list {
		digit := party*own + i%own
		if list[i] = write(r, digit); i/own%4 == 0 {
			list[i] = meant(digit)
		}
	}
	return list
}

// parse reads a picture from a text of a character for each pixel, from 0 to 9. White space does not count.
func parse(text string) (p picture, ok bool) {
	text = strings.Join(strings.Fields(text), "")
	if len(text) != pixels {
		return p, false
	}
	for i := range pixels {
		if text[i] < '0' || text[i] > '9' {
			return p, false
		}
		p.pixels[i] = float32(text[i]-'0') / 9
	}
	return p, true
}
