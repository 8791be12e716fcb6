//go:build race

package sample

// race says whether the race detector is part of this program.
const race = true
