package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/fault"
)

func TestEdit(t *testing.T) {
	t.Parallel()
	set := func(key string, value any) func(t *testing.T, file string) error {
		return func(t *testing.T, file string) error { return Set(t.Context(), file, key, value) }
	}
	add := func(lines ...string) func(t *testing.T, file string) error {
		return func(t *testing.T, file string) error { return AddClient(t.Context(), file, lines) }
	}
	key := func(client string) func(t *testing.T, file string) error {
		return func(t *testing.T, file string) error {
			return SetInClient(t.Context(), file, client, "api_key", "{{NAME}}")
		}
	}
	for _, tt := range []struct {
		name, before string
		edit         func(t *testing.T, file string) error
		after        string // empty: it is refused
	}{
		{"new_file", "", set("model", "a:b"), "model: a:b\n"},
		{"replaced", "# mine\nmodel: x:y   # why\nstream: false\n", set("model", "a:b"), "# mine\nmodel: a:b   # why\nstream: false\n"},
		{"quoted", "model: \"x # \\\" y\" # it's \"mine\"\n", set("model", "a:b"), "model: a:b # it's \"mine\"\n"},
		{"single_quotes", "model: 'it''s # x' # 'y'\n", set("model", "a:b"), "model: a:b # 'y'\n"},
		{"empty", "model:   # none\n", set("model", "a:b"), "model: a:b   # none\n"},
		{"added", "stream: false", set("vault_keychain", true), "stream: false\nvault_keychain: true\n"},
		{"line_ends", "model: x\r\nstream: false\r\n", set("keybindings", "vi"), "model: x\r\nstream: false\r\nkeybindings: vi\r\n"},
		{"needs_quotes", "model: x\n", set("model", "a: b"), "model: \"a: b\"\n"},
		{"carriage_returns", "model: x\rclients:\r  - type: openai\r", add("type: claude"), ""},
		{"flow", "{model: x}\n", set("stream", false), ""},
		{"block_text", "model: |\n  x\nstream: true\n", set("model", "a:b"), ""},
		{"anchor", "model: &m x\nsummarization_model: *m\n", set("model", "a:b"), ""},
		{"not_yaml", "model: [\n", set("model", "a:b"), ""},
		{"first_client", "model: x\n", add("- type: openai", "  api_key: k"), "model: x\nclients:\n  - type: openai\n    api_key: k\n"},
		{"no_clients", "clients: []  # none\nmodel: x\n", add("- type: openai"), "clients:  # none\n  - type: openai\nmodel: x\n"},
		{"another_client", "clients:\n- type: claude # c\n  api_key: x\n\n# end\nmodel: x\n", add("- type: openai"), "clients:\n- type: claude # c\n  api_key: x\n- type: openai\n\n# end\nmodel: x\n"},
		{"flow_clients", "clients: [{type: claude}]\n", add("- type: openai"), ""},
		{"key_added", "clients:\n  - type: claude\n    name: c\n  - type: openai\n    models:\n      - name: m\n", key("openai"), "clients:\n  - type: claude\n    name: c\n  - type: openai\n    api_key: '{{NAME}}'\n    models:\n      - name: m\n"},
		{"key_replaced", "clients:\n  - name: c\n    api_key: sk-1 # old\n    type: claude\n", key("c"), "clients:\n  - name: c\n    api_key: '{{NAME}}' # old\n    type: claude\n"},
		{"no_such_client", "clients:\n  - type: claude\n", key("openai"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "config.yaml")
			if tt.before != "" {
				if err := os.WriteFile(file, []byte(tt.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := tt.edit(t, file)
			got, readErr := os.ReadFile(file)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if tt.after == "" {
				if err == nil || fault.CodeOf(err) != fault.Config || string(got) != tt.before {
					t.Errorf("error %v, and the file is\n%s", err, got)
				}
				if hint := fault.HintOf(err); tt.name != "not_yaml" && !strings.Contains(hint, file) {
					t.Errorf("hint %q", hint)
				}
				return
			}
			if err != nil || string(got) != strings.ReplaceAll(tt.after, "'{{NAME}}'", quotedName(string(got))) {
				t.Errorf("%v\n%s", err, got)
			}
		})
	}
}

// quotedName returns the form of quotes that text has.
func quotedName(text string) string {
	if strings.Contains(text, `"{{NAME}}"`) {
		return `"{{NAME}}"`
	}
	return "'{{NAME}}'"
}
