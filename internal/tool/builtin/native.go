package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// param is a parameter of a native tool.
type param struct {
	name, kind, description string // kind is a type of JSON Schema
	optional                bool
	blank                   bool   // an empty text is a valid value
	more                    string // further members of its schema, each after a comma
}

// native is a tool written as a Go function.
type native struct {
	name, description string
	params            []param
	hints             tool.Hints
	run               func(ctx context.Context, call tool.Call) (tool.Result, error)
}

// guardedTool is a native tool with a question to the user before a call.
type guardedTool struct {
	native
	// consent returns the question of [tool.Guard]. The error says why the call would fail:
	// then it needs no consent either.
	consent func(call tool.Call) (question string, err error)
}

var (
	_ tool.Tool  = (*native)(nil)
	_ tool.Guard = (*guardedTool)(nil)
)

// Declaration implements [tool.Tool].
func (n *native) Declaration() chat.Tool {
	return chat.Tool{Name: n.name, Description: n.description, Parameters: schema(n.params)}
}

// Hints implements [tool.Tool].
func (n *native) Hints() tool.Hints { return n.hints }

// Call implements [tool.Tool].
func (n *native) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	return n.run(ctx, call)
}

// Consent implements [tool.Guard].
func (g *guardedTool) Consent(call tool.Call) string {
	question, _ := g.question(call)
	return question
}

func (g *guardedTool) question(call tool.Call) (string, error) { return g.consent(call) }

// schema is the JSON Schema of parameters, in their order.
func schema(params []param) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	required := []string{}
	for i, p := range params {
		if i > 0 {
			b.WriteByte(',')
		}
		description, _ := json.Marshal(p.description) // a string always has a JSON form
		fmt.Fprintf(&b, `%q:{"type":%q,"description":%s%s}`, p.name, p.kind, description, p.more)
		if !p.optional {
			required = append(required, p.name)
		}
	}
	list, _ := json.Marshal(required)
	fmt.Fprintf(&b, `},"required":%s}`, list)
	return b.Bytes()
}

// arguments reads the arguments of a call into a struct. A required argument that is
// missing, or empty although it must not be, is an error.
func arguments[A any](call tool.Call, params []param) (A, error) {
	var none A
	given, err := tool.Decode[map[string]json.RawMessage](call)
	if err != nil {
		return none, err
	}
	for _, p := range params {
		raw, ok := given[p.name]
		if p.optional {
			continue
		}
		if !ok || string(raw) == "null" {
			return none, fmt.Errorf("argument %q is missing", p.name)
		}
		var text string
		if p.kind == "string" && !p.blank && json.Unmarshal(raw, &text) == nil && strings.TrimSpace(text) == "" {
			return none, fmt.Errorf("argument %q is empty", p.name)
		}
	}
	return tool.Decode[A](call)
}

// run adapts a function of decoded arguments to the function that a native tool
// runs.
func run[A any](params []param, f func(ctx context.Context, args A, call tool.Call) (tool.Result, error)) func(context.Context, tool.Call) (tool.Result, error) {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		args, err := arguments[A](call, params)
		if err != nil {
			return tool.Result{}, err
		}
		return f(ctx, args, call)
	}
}

// function is [run] for a function that returns a text.
func function[A any](params []param, f func(ctx context.Context, args A, call tool.Call) (string, error)) func(context.Context, tool.Call) (tool.Result, error) {
	return run(params, func(ctx context.Context, args A, call tool.Call) (tool.Result, error) {
		out, err := f(ctx, args, call)
		return tool.Result{Output: out}, err
	})
}

// consent adapts a function of decoded arguments to the question of a guarded
// tool.
func consent[A any](params []param, f func(args A) (string, error)) func(tool.Call) (string, error) {
	return func(call tool.Call) (string, error) {
		args, err := arguments[A](call, params)
		if err != nil {
			return "", err
		}
		return f(args)
	}
}

// number is a whole number that models also write as a string.
type number int

// UnmarshalJSON implements [json.Unmarshaler].
func (n *number) UnmarshalJSON(data []byte) error {
	text := strings.TrimSpace(strings.Trim(string(data), `"`))
	if text == "" || text == "null" {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != float64(int(f)) {
		return fmt.Errorf("%s is not a whole number", data)
	}
	*n = number(f)
	return nil
}

// indent returns s as a block of code in Markdown. No text in s can end the block.
func indent(s string) string {
	return "    " + strings.ReplaceAll(text.Visible(s), "\n", "\n    ")
}

// runQuestion returns the question whether code is run. It says how many lines the code has if a screen could be too small for them.
func runQuestion(what, with, code string) string {
	const many = 10
	if n := lineCount(code); n > many {
		what += fmt.Sprintf(" of %d lines", n)
	}
	return fmt.Sprintf("Run %s%s?\n\n%s", what, with, numberLines(code))
}

// numberLines is indent for what is run. Several lines have numbers, so that a user sees whether all of them are there.
func numberLines(s string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	if len(lines) == 1 {
		return indent(lines[0])
	}
	width := len(strconv.Itoa(len(lines)))
	var shown []string
	for i := 0; i < len(lines); i++ {
		empty := 0
		for i+empty < len(lines) && strings.Trim(lines[i+empty], " \t") == "" {
			empty++
		}
		if empty > 2 { // they could push what is before them off the screen
			shown = append(shown, fmt.Sprintf("%*s  (%d empty lines)", width, "", empty))
			i += empty - 1
			continue
		}
		shown = append(shown, strings.TrimRight(fmt.Sprintf("%*d  %s", width, i+1, lines[i]), " "))
	}
	return indent(strings.Join(shown, "\n"))
}

// missingKey returns an error that names the variable a tool needs.
func missingKey(name string) error {
	return fmt.Errorf("the user has not set the environment variable %s, which this tool needs", name)
}

// need returns the values of variables that have to be set.
func (b *base) need(names ...string) ([]string, error) {
	values := make([]string, len(names))
	for i, name := range names {
		if values[i] = b.Getenv(name); values[i] == "" {
			return nil, missingKey(name)
		}
	}
	return values, nil
}
