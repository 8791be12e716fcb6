package legacy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/legacy"
	"loki/internal/llm/chat"
)

func TestProblems(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{"no_yaml", "a: [", "old.yaml:1"},
		{"empty", "", "model"},
		{"no_messages", "model: m\n", "messages"},
		{"messages_no_list", "model: m\nmessages: 1\n", "2:11"},
		{"unknown_role", "model: m\nmessages:\n- {role: emperor, content: x}\n", "emperor"},
		{"no_content", "model: m\nmessages:\n- {role: user}\n", "content"},
		{"unknown_part", "model: m\nmessages:\n- {role: user, content: [{type: smell}]}\n", "smell"},
		{"call_without_name", "model: m\nmessages:\n- {role: tool, content: {tool_results: [{call: {}, output: x}]}}\n", "name"},
		{"temperature", "model: m\ntemperature: hot\nmessages: []\n", "temperature"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := legacy.Parse("old.yaml", []byte(tt.src))
			if fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestWhatIsRead(t *testing.T) {
	f, err := legacy.Parse("old.yaml", []byte("model: m\nfuture: 1\nmessages:\n- {role: user, content: 42}\n- {role: assistant, content: null}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Transcript.Live; len(got) != 2 || got[0].Text() != "42" || got[1].Role != chat.Assistant || len(got[1].Parts) != 0 {
		t.Errorf("messages %+v", got)
	}
}

// TestLargeImages reads more than a YAML document may have.
func TestLargeImages(t *testing.T) {
	url := "data:image/png;base64," + strings.Repeat("QUJD", 2_500_000)
	for _, tt := range []struct{ name, quote string }{{"plain", ""}, {"single", "'"}, {"double", `"`}} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("model: m\nmessages:\n- role: user\n  content:\n  - {type: text, text: look}\n")
			for range 2 {
				fmt.Fprintf(&b, "  - type: image_url\n    image_url:\n      url: %s%s%s\n", tt.quote, url, tt.quote)
			}
			fmt.Fprintf(&b, "- role: user\n  content: |-\n    say\n    url: %s\n    again\n", url[:2000])
			start := time.Now()
			f, err := legacy.Parse("old.yaml", []byte(b.String()))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d MB in %v", b.Len()>>20, time.Since(start))
			parts := f.Transcript.Live[0].Parts
			if len(parts) != 3 || parts[1].URL != url || parts[2].URL != url {
				t.Errorf("%d parts", len(parts))
			}
			if got, want := f.Transcript.Live[1].Text(), "say\nurl: "+url[:2000]+"\nagain"; got != want {
				t.Errorf("a text that looks like an image has %d bytes, want %d", len(got), len(want))
			}
		})
	}
}

func TestTranscriptLog(t *testing.T) {
	system := func(text string) chat.Message { return chat.Text(chat.System, text) }
	u, a := chat.Text(chat.User, "u"), chat.Text(chat.Assistant, "a")
	u2, a2 := chat.Text(chat.User, "u2"), chat.Text(chat.Assistant, "a2")
	list := func(m ...chat.Message) []chat.Message { return m }
	for _, tt := range []struct {
		name string
		in   session.Transcript
		want string // kinds and sizes of the groups
	}{
		{"nothing", session.Transcript{}, ""},
		{"turns", session.Transcript{Live: list(system("s"), u, a, u2, a2)}, "turn 3 lead 1, turn 2"},
		{"no_instructions", session.Transcript{Live: list(u, a, u2)}, "turn 2, turn 1"},
		{"compressed", session.Transcript{Compacted: list(system("s"), u, a), Live: list(system("s\n\nr"))}, `turn 3 lead 1, compaction keep 2 "r"`},
		{"compressed_and_on", session.Transcript{Compacted: list(system("s"), u, a), Live: list(system("s\n\nr"), u2, a2)}, `turn 3 lead 1, compaction keep 0 "r", turn 2`},
		{"compressed_twice", session.Transcript{Compacted: list(system("s"), u, a, system("s\n\nr"), u2, a2), Live: list(system("s\n\nr2"))}, `turn 3 lead 1, turn 2, compaction keep 2 "r2"`},
		{"other_instructions", session.Transcript{Compacted: list(u, a), Live: list(system("r"))}, `turn 3 lead 1, compaction keep 2 ""`},
		{"no_recap", session.Transcript{Compacted: list(u, a), Live: list(u2)}, `turn 2, compaction keep 0 "", turn 1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data, err := tt.in.Log(time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(string(data)) {
				var mark struct {
					Mark                 string
					Messages, Lead, Keep int
					Recap                string
				}
				if err := json.Unmarshal([]byte(line), &mark); err != nil && strings.Contains(line, `"mark"`) {
					t.Fatal(err)
				}
				switch mark.Mark {
				case "turn":
					text := fmt.Sprint("turn ", mark.Messages)
					if mark.Lead > 0 {
						text += fmt.Sprint(" lead ", mark.Lead)
					}
					got = append(got, text)
				case "compaction":
					got = append(got, fmt.Sprintf("compaction keep %d %q", mark.Keep, mark.Recap))
				}
			}
			if text := strings.Join(got, ", "); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
}

// FuzzParse reads any text: it is an error, or a conversation that can be stored.
func FuzzParse(f *testing.F) {
	f.Add("model: m\nmessages: []\n")
	f.Add("model: m\ntemperature: 0.5\nmessages:\n- role: user\n  content: hi\n- role: assistant\n  content: |-\n    a\n    b\n")
	f.Add("model: m\nmessages:\n- role: user\n  content:\n  - {type: text, text: x}\n  - {type: image_url, image_url: {url: 'data:x'}}\n")
	f.Add("model: m\nmessages:\n- role: tool\n  content: {tool_results: [{call: {name: n, arguments: {a: [1, null]}, id: null}, output: {b: 2}}], text: t, sequence: true}\n")
	f.Add("model: m\ncompressed_messages:\n- {role: system, content: s}\n- {role: user, content: q}\nmessages:\n- {role: system, content: s r}\ndata_urls: {a: b}\nagent_variables: {x: 1}\n")
	f.Add("model: m\nmessages:\n- role: user\n  content:\n  - type: image_url\n    image_url:\n      url: data:image/png;base64," + strings.Repeat("A", 1100) + "\n")
	f.Fuzz(func(t *testing.T, src string) {
		file, err := legacy.Parse("old.yaml", []byte(src))
		if err != nil {
			return
		}
		if _, err := file.Transcript.Log(time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := session.DecodeState("state.yaml", session.State{Settings: file.Settings, DataURLs: file.DataURLs}.Encode()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestNarrationBesideCalls(t *testing.T) {
	f, err := legacy.Parse("old.yaml", []byte(`
model: m
messages:
- {role: user, content: look}
- role: tool
  content:
    sequence: true
    tool_results:
    - {call: {name: ls, id: a}, output: x, text: Let me look., thinking: [{thinking: hm, signature: s}]}
    - {call: {name: ls, id: b}, output: y, text: null, thinking: plain}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []chat.Part{{Type: chat.ReasoningPart, Text: "hm", Signature: "s"}, {Type: chat.TextPart, Text: "Let me look."}}
	if diff := cmp.Diff(want, f.Transcript.Live[1].Parts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]chat.Part{{Type: chat.ReasoningPart, Text: "plain"}}, f.Transcript.Live[3].Parts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOlderNames reads settings under the names of still older programs. Present names beat
// them, and lists of tools are comma lists.
func TestOlderNames(t *testing.T) {
	for text, want := range map[string]string{
		"use_tools: fs_ls\ncompress_threshold: 9000":                                                 "fs_ls 9000",
		"use_tools: [fs_ls, fs_cat]\ncompress_threshold: 0":                                          "fs_ls,fs_cat 0",
		"use_tools: a\nenabled_tools: [b, c]\ncompress_threshold: 1\ncompression_threshold: 2":       "b,c 2",
		"enabled_tools: []\ncompression_threshold: 3\nskills_enabled: true\nenabled_mcp_servers: []": " 3",
	} {
		f, err := legacy.Parse("s", []byte("model: m\nmessages: []\n"+text+"\n"))
		if err != nil || f.Settings.EnabledTools == nil || f.Settings.CompressionThreshold == nil {
			t.Errorf("%s: %+v, %v", text, f.Settings, err)
			continue
		}
		if got := fmt.Sprintf("%s %d", *f.Settings.EnabledTools, *f.Settings.CompressionThreshold); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
