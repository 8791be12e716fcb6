// Package role holds the instructions under which a model answers.
//
// A role is a prompt and settings: the model, its sampling, the tools it may use. It is a
// Markdown file whose front matter holds the settings and whose body is the prompt:
//
//	---
//	model: openai:gpt-5
//	temperature: 0.2
//	---
//	You are an expert in writing letters.
//
// [Role.Messages] describes how a prompt and the user's input become messages. A
// [Library] finds roles by name: the user's own, and the ones that are part of the program.
package role

import (
	"slices"
	"strings"

	"loki/internal/llm/chat"
)

// InputPlaceholder is replaced by the user's input wherever it occurs in a prompt.
const InputPlaceholder = "__INPUT__"

// Temporary is the name of a role that was made of a text and has no file.
const Temporary = "temp"

// Role is a prompt with its settings. It is not changed after it was made.
type Role struct {
	Name     string
	File     string // empty for roles without a file
	Prompt   string // the instructions, may be empty
	Template string // how the user's input is put, where the instructions are given apart; may be empty
	Settings chat.Settings

	written *written // nil if no library made it
}

// written is what a role says before the values of the machine take the place of placeholders.
type written struct{ prompt, template string }

// Source returns the role with the placeholders that [Library] replaced, as it is kept in a file.
func (r Role) Source() Role {
	if r.written != nil {
		r.Prompt, r.Template = r.written.prompt, r.written.template
	}
	return r
}

// Bundled reports whether the role is one that is part of the program.
func (r Role) Bundled() bool { return r.File == "" && r.Name != Temporary }

// Messages returns the conversation that asks for an answer to input, a message of the
// user.
//
//   - Without a prompt it is the input alone.
//   - A prompt with __INPUT__ in it is the user's message, with the input in its place.
//   - A prompt with examples, each a part after "### INPUT:" and one after "### OUTPUT:", is
//     a system message, the examples as turns, and the input.
//   - Any other prompt is a system message before the input.
//
// A role that has both instructions and a template has the instructions as its system
// message, followed by what the template says by the same rules.
func (r Role) Messages(input chat.Message) []chat.Message {
	prompt, system := r.Prompt, ""
	if r.Template != "" {
		prompt = r.Template
		if system = r.Prompt; system == prompt {
			system = ""
		}
	}
	if strings.Contains(prompt, InputPlaceholder) {
		return compose(system, nil, fill(prompt, input))
	}
	own, examples := splitExamples(prompt)
	return compose(joinParagraphs(system, own), examples, input)
}

func compose(system string, examples []chat.Message, input chat.Message) []chat.Message {
	var messages []chat.Message
	if system != "" {
		messages = append(messages, chat.Text(chat.System, system))
	}
	return append(append(messages, examples...), input)
}

func joinParagraphs(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// fill puts the text of input into the template. Images stay behind it.
func fill(template string, input chat.Message) chat.Message {
	filled := chat.Text(input.Role, strings.ReplaceAll(template, InputPlaceholder, input.Text()))
	for _, p := range input.Parts {
		if p.Type != chat.TextPart {
			filled.Parts = append(filled.Parts, p)
		}
	}
	return filled
}

const (
	inputMarker  = "### INPUT:"
	outputMarker = "### OUTPUT:"
)

// splitExamples takes the examples off a prompt. A prompt whose markers do not come in
// pairs has none: then all of it is the system message.
func splitExamples(prompt string) (system string, examples []chat.Message) {
	markers := [...]string{inputMarker, outputMarker}
	roles := [...]chat.Role{chat.User, chat.Assistant}
	system, rest, found := strings.Cut(prompt, inputMarker)
	for i := 0; found; i++ {
		var part string
		part, rest, found = strings.Cut(rest, markers[(i+1)%2])
		examples = append(examples, chat.Text(roles[i%2], strings.TrimSpace(part)))
	}
	if len(examples) == 0 || len(examples)%2 != 0 {
		return prompt, nil
	}
	return strings.TrimSpace(system), slices.Clip(examples)
}
