//go:build unix

package repl_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestHostileNames shows and completes what others have named and described: a terminal obeys nothing of it.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	const hostile = "X\x1b]52;c;QQ==\x07\u202eeno\u009b2J"
	quoted, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	q := string(quoted)
	x := begin(t, map[string]string{
		"config.yaml":                        "model: builtin:script\ntheme: dark\nsave_session: true\nclients: [{type: builtin, script: rules.yaml}]\n",
		"rules.yaml":                         "default: {reply: " + q + "}\n",
		"roles/" + hostile + ".md":           hostile,
		"roles/plain.md":                     hostile,
		"macros/" + hostile + ".yaml":        "steps: [.info]\nvariables: [{name: " + q + "}]\n",
		"agents/" + hostile + "/config.yaml": "name: x\ndescription: " + q + "\ninstructions: hi\n",
		"agents/plain/config.yaml":           "name: plain\ndescription: " + q + "\ninstructions: hi\nconversation_starters: [" + q + "]\n",
	})
	for _, keys := range []string{
		".session kept\r", "hello\r", ".info\r", ".info session\r", ".exit session\r", ".role plain\r", ".info role\r", ".exit role\r",
		".agent plain\r", ".info agent\r", ".starter\r", ".starter 1\r", ".exit agent\r", ".find hello\r", ".runs\r", ".list\r",
	} {
		x.types(keys)
		x.sees("\x1b[>5u") // which begins to read the next line
	}
	for _, keys := range []string{".role \t\t", ".agent \t\t", ".macro \t\t"} {
		x.types(keys)
		x.sees("52;c")
		x.types("\x1b\x15\x03")
	}
	x.types("\x04")
	x.leaves(0)
	for _, part := range []string{"\x1b]52", "\x07", "\u202e", "\u009b"} {
		if i := strings.Index(x.text(), part); i >= 0 {
			t.Errorf("the terminal gets %q: %q", part, x.text()[max(0, i-300):i+50])
		}
	}
}
