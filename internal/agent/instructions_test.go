package agent_test

import (
	"strings"
	"testing"

	"loki/internal/agent"
	"loki/internal/agent/team/todo"
	"loki/internal/llm/chat"
)

// headings returns the sections of a system prompt, and that a blank line is before each.
func headings(t *testing.T, prompt string) string {
	t.Helper()
	var found []string
	lines := strings.Split(prompt, "\n")
	for i, line := range lines {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			found = append(found, heading)
			if i > 0 && lines[i-1] != "" {
				t.Errorf("no blank line before %q", line)
			}
		}
	}
	return strings.Join(found, ", ")
}

func TestSystemPromptSections(t *testing.T) {
	t.Parallel()
	tools := func(names ...string) []chat.Tool {
		var list []chat.Tool
		for _, name := range names {
			list = append(list, chat.Tool{Name: name})
		}
		return list
	}
	all := tools("todo__init", "agent__spawn", "agent__send_message", "user__ask")
	on := agent.Definition{Todo: todo.Settings{Inject: true}, InjectSpawn: true}
	for _, tt := range []struct {
		name  string
		d     agent.Definition
		base  string
		tools []chat.Tool
		want  string
	}{
		{"all", on, "Base.", all, "Todo list, Other agents, Teammates, Questions to the user"},
		{"without_base", on, "", all, "Todo list, Other agents, Teammates, Questions to the user"},
		{"off", agent.Definition{}, "Base.", all, "Teammates, Questions to the user"},
		{"no_such_tools", on, "Base.", tools("fs_cat"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.d.SystemPrompt(agent.Prompt{Base: tt.base, Tools: tt.tools})
			if !strings.HasPrefix(got, tt.base) {
				t.Errorf("does not begin with the instructions:\n%s", got)
			}
			if h := headings(t, got); h != tt.want {
				t.Errorf("sections %s, want %s", h, tt.want)
			}
		})
	}
}

func TestSystemPromptPlaceholders(t *testing.T) {
	t.Parallel()
	texts := agent.Texts{
		Variables: map[string]string{"project-dir": "/p on {{__os__}}", "a": "{{b}} {{SECRET}}", "b": "B"},
		Special: func(name string) (string, bool) {
			return "linux", name == "__os__"
		},
	}
	tools := []chat.Tool{{Name: "one", Description: "Does one.\nSlowly."}, {Name: "two", Description: " Does two. "}}
	for _, tt := range []struct{ name, base, want string }{
		{"variable", "in {{project-dir}}.", "in /p on linux."},
		{"spaces", "{{ b }}", "B"},
		{"once", "{{a}}", "{{b}} {{SECRET}}"},
		{"unknown", "{{other}} {{}} {{ }} {b}", "{{other}} {{}} {{ }} {b}"},
		{"tools", "<{{__tools__}}>", "<1. one: Does one.\n2. two: Does two.>"},
		{"table", "a\n---\n| x |\n|---|\n---\nb", "a\n---\n| x |\n|---|\n---\nb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &agent.Definition{}
			if got := d.SystemPrompt(agent.Prompt{Base: tt.base, Tools: tools, Texts: texts}); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
