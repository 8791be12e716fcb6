package wire_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"loki/internal/llm/provider/wire"
)

// TestHalves: halves of characters pass a JSON decoder, whatever the packets, and join or become U+FFFD.
func TestHalves(t *testing.T) {
	for in, want := range map[string]string{
		`plain`:                             "plain",
		`\ud83d\ude0b`:                      "😋",
		`a\ud83d`:                           "a\uFFFD",
		`\ude0bb`:                           "\uFFFDb",
		`\ud83d\ud83d\ude0b`:                "\uFFFD😋",
		`\ud83d\n`:                          "\uFFFD\n",
		`\ud83d\u0041`:                      "\uFFFDA",
		`\\ud83d`:                           `\ud83d`,
		`\\\ud83d`:                          "\\\uFFFD",
		`\"\ud83d\"`:                        "\"\uFFFD\"",
		`x\u00e9\ud83d\\ude0b`:              "xé\uFFFD\\ude0b",
		strings.Repeat(`\\`, 99) + `\ud83d`: strings.Repeat(`\`, 99) + "\uFFFD",
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(`"` + in + `"`), "bytes": iotest.OneByteReader(strings.NewReader(`"` + in + `"`))} {
			doc, err := io.ReadAll(wire.Halves(r))
			if err != nil {
				t.Fatal(err)
			}
			var text string
			if err := json.Unmarshal(doc, &text); err != nil {
				t.Errorf("%s, %s: %v", in, name, err)
			}
			if got := wire.JoinHalves(text); got != want {
				t.Errorf("%s, %s: %q, want %q", in, name, got, want)
			}
		}
	}
	for _, end := range []string{`\`, `\u`, `\ud83d`, `\ud83d\`, `\ud83d\u`, `\ud8`} { // a body that breaks off
		if _, err := io.ReadAll(wire.Halves(strings.NewReader(end))); err != nil {
			t.Errorf("%s: %v", end, err)
		}
	}
}
