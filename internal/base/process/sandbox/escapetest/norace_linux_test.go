//go:build !race

package escapetest

// underRace is set if the race detector is at work.
const underRace = false
