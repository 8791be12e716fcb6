package cli

import "strconv"

// breakFlags are the flags that suspend the run of a graph.
var breakFlags = []string{"break", "step"}

// steps returns after how many super-steps --step suspends a run, 0 for never.
func (o *options) steps() int {
	if o.stepN == oneStep {
		return 1
	}
	n, _ := strconv.Atoi(o.stepN) // it was checked
	return n
}

// shownStep returns the super-step that --step names beside --state, -1 for the last one.
func (o *options) shownStep() int {
	if o.stepN == "" {
		return -1
	}
	return o.steps()
}
