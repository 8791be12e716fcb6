// Package tool is what a model may do besides talking.
//
// A [Tool] is a function with a declaration that the model sees. A [Call] is one request to
// run it, a [Result] its outcome. A [Set] holds tools by name, in a fixed order. A [Box]
// answers the calls of one request to a model: it finds the tool, repairs the arguments if
// the model wrote them a little wrong, gets the user's consent where that is needed, runs
// the tool within its limits, and puts the outcome into the text that the model reads. Each
// call is a recorded step, so that a finished call is not repeated.
//
// # What the model reads
//
// A tool that succeeds and says nothing gives an empty text. JSON output is returned as it
// is, without needless blanks; any other output is {"output": "..."}. A failure is
//
//	{"tool_call_error": "what went wrong", "output": "...", "stderr": "..."}
//
// where output and stderr are what the tool printed, and absent if it printed nothing. A
// success has a stderr too if the tool printed one. Whatever is too long is cut in the
// middle, with a note in place of what is missing. An unknown tool, unreadable arguments,
// a no of the user, a timeout and a panic are failures for the model to react to. Only the
// end of the request itself is an error in Go's sense.
package tool
