// Package sample says how much of a large set a test tries.
//
// Tests that compare thousands of inputs one after the other try a part of them, so that all tests of the
// project take minutes, unless LOKI_TEST=full asks for all inputs.
package sample

import "os"

// Step returns every how many-th input to try: n, or 1 with LOKI_TEST=full.
func Step(n int) int {
	if Full() {
		return 1
	}
	return n
}

// Full reports whether tests leave nothing out.
func Full() bool { return os.Getenv("LOKI_TEST") == "full" }
