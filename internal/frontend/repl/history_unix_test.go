//go:build linux || darwin

package repl_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHistoryOnDisk: what is kept for the next time has no credentials, neither those that the program has
// used nor those of addresses.
func TestHistoryOnDisk(t *testing.T) {
	x := begin(t, map[string]string{
		"rules.yaml": slow,
		"config.yaml": "model: builtin:script\ntheme: dark\nrepl_history: true\n" +
			"clients: [{type: builtin, script: rules.yaml}, {type: openai, name: far, api_base: 'http://127.0.0.1:1', api_key: sk-far-0123456789, models: [{name: x}]}]\n",
	})
	x.types(".set dry_run true\r")
	x.sees(prompt)
	x.types(".model far:x\r")
	const prompt = "far:x)>"
	x.sees(prompt)
	x.types("hello\r")
	x.sees("hello", prompt)
	x.types("is sk-far-0123456789 a key?\r")
	x.sees("a key?", prompt)
	x.types(".install remote https://token@127.0.0.1:1/x --nothing\r")
	x.sees("--nothing", "Error: ", prompt)
	x.types("\x1b[A")
	x.sees("https://token@127.0.0.1:1/x") // in memory it is as it was typed
	x.types("\x03")
	x.types(".exit\r")
	x.leaves(0)
	kept, err := os.ReadFile(filepath.Join(x.dir, "state", "repl_history"))
	want := `".set dry_run true"
".model far:x"
"hello"
"is ***FAR_API_KEY*** a key?"
".install remote https://***@127.0.0.1:1/x --nothing"
".exit"
`
	if err != nil || string(kept) != want {
		t.Errorf("%v, the history is\n%s\nwant\n%s", err, kept, want)
	}
}
