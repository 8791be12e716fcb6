package setup

import (
	"os"
	"strings"
	"testing"

	"loki/internal/setup/config"
)

// changing returns a wizard for a configuration that there is.
func changing(t *testing.T, text string, vars []string, answers ...string) *fixture {
	t.Helper()
	f := newFixture(t, answers...)
	if err := write(f.File, text); err != nil {
		t.Fatal(err)
	}
	env := config.NewEnv("linux", append(vars, "HOME=/home/me", "LOKI_CONFIG_FILE="+f.File))
	paths, err := config.NewPaths(env)
	if err != nil {
		t.Fatal(err)
	}
	f.Getenv = env.Get
	f.Load = func() (*config.Config, error) {
		cfg, _, err := config.Load(paths, env)
		return cfg, err
	}
	return f
}

const present = `# mine
model: here:big   # the best
clients:
  - type: openai-compatible
    name: here # at home
    api_base: http://127.0.0.1:1/v1
    models: [{name: big}, {name: small}]

stream: false
`

func TestChange(t *testing.T) {
	for _, tt := range []struct {
		name    string
		text    string
		vars    []string
		answers []string
		want    func(text string) string // what becomes of it
		stored  map[string]string
		secrets map[string]string
		note    string // one of the notes
	}{
		{
			name: "model", answers: []string{"Default model: here:big", "here:small", "Done"},
			want: func(s string) string { return strings.Replace(s, "here:big", "here:small", 1) }, note: "Saved model: here:small in ",
		},
		{
			name: "editor_keys", answers: []string{"Editor keys: emacs", "vi", "Editor keys: vi", "emacs", "Done"},
			want: func(s string) string { return s + "keybindings: emacs\n" },
		},
		{
			name: "variable_wins", vars: []string{"LOKI_KEYBINDINGS=vi"}, answers: []string{"Editor keys: vi", "emacs", "Done"},
			want: func(s string) string { return s + "keybindings: emacs\n" }, note: "LOKI_KEYBINDINGS is set, and is what will be used.",
		},
		{
			name:    "another_provider",
			answers: []string{"Add a provider; there is: here", "openai-compatible", "there", "http://127.0.0.1:1/v1", "sk-new", "m", "keep here:big", "Done"},
			want: func(s string) string {
				return strings.Replace(s, "\nstream", `  - type: openai-compatible
    name: there
    api_base: http://127.0.0.1:1/v1
    api_key: "{{THERE_API_KEY}}"   # a secret of the vault
    models:
      - name: m
        supports_function_calling: true

stream`, 1)
			},
			secrets: map[string]string{"THERE_API_KEY": "sk-new"}, note: "The key is encrypted in /home/me/.config/loki/vault.yml; /home/me/.loki_password has the password that opens it.",
		},
		{
			name: "first_key", answers: []string{"Store a key", "here: none", "sk-here", "Done"},
			want: func(s string) string {
				return strings.Replace(s, "    name: here", "    api_key: \"{{HERE_API_KEY}}\"\n    name: here", 1)
			},
			secrets: map[string]string{"HERE_API_KEY": "sk-here"},
		},
		{
			name: "key_in_the_file", text: "clients:\n  - type: openai\n    api_key: sk-open # paid\n", answers: []string{"Store a key", "openai: in the file", "sk-new", "Done"},
			want:    func(string) string { return "clients:\n  - type: openai\n    api_key: \"{{OPENAI_API_KEY}}\" # paid\n" },
			secrets: map[string]string{"OPENAI_API_KEY": "sk-new"},
		},
		{
			name: "key_in_the_vault", text: "clients:\n  - type: openai\n    api_key: '{{MINE}}'\n", answers: []string{"Store a key", "openai: in the vault, MINE", "sk-new", "Done"},
			want: func(s string) string { return s }, stored: map[string]string{"MINE": "sk-old"}, secrets: map[string]string{"MINE": "sk-new"},
		},
		{
			name: "key_of_a_variable", text: "clients:\n  - type: openai\n", vars: []string{"OPENAI_API_KEY=sk-env"}, answers: []string{"Store a key", "openai: OPENAI_API_KEY", "sk-new", "Done"},
			want:    func(string) string { return "clients:\n  - type: openai\n    api_key: \"{{OPENAI_API_KEY}}\"\n" },
			secrets: map[string]string{"OPENAI_API_KEY": "sk-new"}, note: "OPENAI_API_KEY is set, and is what will be used.",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.text
			if text == "" {
				text = present
			}
			f := changing(t, text, tt.vars, tt.answers...)
			t.Cleanup(func() {
				if t.Failed() {
					for _, q := range f.asker.Asked() {
						t.Logf("%s %q", q.Text, q.Options)
					}
				}
			})
			for name, secret := range tt.stored {
				f.vault.secrets[name] = secret
			}
			if err := Change(t.Context(), f.Options); err != nil {
				t.Fatalf("%v, after %d questions", err, len(f.asker.Asked()))
			}
			got, err := os.ReadFile(f.File)
			if want := tt.want(text); err != nil || string(got) != want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, want)
			}
			for name, want := range tt.secrets {
				if f.vault.secrets[name] != want {
					t.Errorf("the vault has %v", f.vault.secrets)
				}
			}
			if all := strings.Join(f.notes, "\n"); !strings.Contains(all, tt.note) {
				t.Errorf("notes:\n%s", all)
			}
			checkFile(t, f, tt.secrets)
		})
	}
}

// TestChangeOffers what there is not yet, and nothing that would be there twice.
func TestChangeOffers(t *testing.T) {
	f := changing(t, "clients:\n  - type: openai\n", nil, "Add a provider; there is: openai", "openai-compatible", "openai")
	if err := Change(t.Context(), f.Options); err == nil || !strings.Contains(err.Error(), "there is a provider of that name already") {
		t.Errorf("%v", err)
	}
	for _, option := range f.asker.Asked()[1].Options {
		if option == "openai" {
			t.Error("openai is offered again")
		}
	}
	if f = changing(t, "stream: false\n", []string{"OPENAI_API_KEY=sk"}, "Done"); Change(t.Context(), f.Options) != nil {
		t.Error("it failed")
	}
	if options := strings.Join(f.asker.Asked()[0].Options, "\n"); strings.Contains(options, "Store a key") || !strings.Contains(options, "there is: none") {
		t.Errorf("%s", options)
	}
}

// TestChangeRefuses a form of the file that it cannot follow, without changing anything.
func TestChangeRefuses(t *testing.T) {
	const text = "{model: here:big, clients: [{type: openai}]}\n"
	f := changing(t, text, nil, "Editor keys: emacs", "vi")
	if err := Change(t.Context(), f.Options); err == nil || !strings.Contains(err.Error(), "was not changed") {
		t.Errorf("%v", err)
	}
	if got, _ := os.ReadFile(f.File); string(got) != text {
		t.Errorf("%s", got)
	}
}
