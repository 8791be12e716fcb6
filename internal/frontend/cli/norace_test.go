//go:build !race

package cli

// watched says whether the race detector is part of this program.
const watched = false
