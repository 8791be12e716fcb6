package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/ask"
	"loki/internal/base/text"
	"loki/internal/base/web"
)

const (
	accept  = "accept"
	decline = "decline"
	cancel  = "cancel"
)

// maxFields is how many questions a server may ask at once.
const maxFields = 50

// elicit answers a request of a server for input of the user. It asks the user of the
// running call. If calls of different conversations share the connection, the question
// cannot be assigned to one of them, and it is declined.
func (c *conn) elicit(ctx context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	running := c.runningCalls()
	for _, call := range running { // people take their time
		call.timer.pause()
		defer call.timer.resume()
	}
	return c.put(ctx, soleAsker(running), req.Params), nil
}

// put puts a question of the server to the user, if there is an asker.
func (c *conn) put(ctx context.Context, asker ask.Asker, p *sdk.ElicitParams) *sdk.ElicitResult {
	visit := p.Mode == "url" && c.opts.Open != nil
	if asker == nil || !visit && cmp.Or(p.Mode, "form") != "form" {
		c.log.Info("question of an MCP server declined: no user can be asked")
		return &sdk.ElicitResult{Action: decline}
	}
	put := c.form
	if visit {
		put = c.visit
	}
	content, err := put(ctx, asker, p)
	switch {
	case err == nil && content == nil:
		return &sdk.ElicitResult{Action: decline}
	case err == nil:
		return &sdk.ElicitResult{Action: accept, Content: content}
	case errors.Is(err, ask.ErrUnavailable):
		return &sdk.ElicitResult{Action: decline}
	}
	return &sdk.ElicitResult{Action: cancel}
}

// soleAsker returns the asker of the one conversation that all the calls belong to, nil if
// there are several.
func soleAsker(calls []*call) ask.Asker {
	for _, call := range calls {
		if call.scope != calls[0].scope {
			return nil
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return calls[0].scope.opts.Asker
}

// form asks for each of the fields. A nil result means that the user declined.
func (c *conn) form(ctx context.Context, asker ask.Asker, p *sdk.ElicitParams) (map[string]any, error) {
	fields := formFields(p.RequestedSchema)
	if len(fields) > maxFields {
		return nil, nil
	}
	yes, no := "answer", "decline"
	if len(fields) == 0 {
		yes = "accept"
	}
	answer, err := asker.Ask(ctx, ask.Question{
		Kind:    ask.Select,
		Text:    fmt.Sprintf("The MCP server %q asks:\n\n%s", c.server.ID, text.Visible(text.Cut(p.Message, 8<<10))),
		Options: []string{yes, no}, Consent: true, Affirms: yes,
	})
	if err != nil || answer != yes {
		return nil, err
	}
	content := make(map[string]any, len(fields))
	for _, f := range fields {
		value, given, err := f.ask(ctx, asker)
		if err != nil {
			return nil, err
		}
		if given {
			content[f.name] = value
		}
	}
	return content, nil
}

// elicitation says which questions of a server can be asked.
func (c *conn) elicitation() *sdk.ElicitationCapabilities {
	e := &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}
	if c.opts.Open != nil {
		e.URL = &sdk.URLElicitationCapabilities{}
	}
	return e
}

// visit opens an address to which a server refers, if the user agrees. A nil result means that the user declined.
func (c *conn) visit(ctx context.Context, asker ask.Asker, p *sdk.ElicitParams) (map[string]any, error) {
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !web.Loopback(u.Hostname())) {
		c.log.Warn("an MCP server refers to an address that is not opened", "address", text.Cut(text.Visible(p.URL), 200))
		return nil, nil
	}
	const yes, no = "open", "decline"
	answer, err := asker.Ask(ctx, ask.Question{
		Kind:    ask.Select,
		Text:    fmt.Sprintf("The MCP server %q asks you to open a page of %s:\n\n%s\n\n%s", c.server.ID, u.Host, text.Visible(text.Cut(p.Message, 8<<10)), text.Visible(u.String())),
		Options: []string{yes, no}, Consent: true, Affirms: yes,
	})
	if err != nil || answer != yes {
		return nil, err
	}
	c.opts.Open(u.String())
	return map[string]any{}, nil
}

// field is one property of a form. Forms are flat, and their properties text, numbers,
// booleans and choices.
type field struct {
	name     string
	required bool

	Type        string      `json:"type"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Enum        []string    `json:"enum"`
	EnumNames   []string    `json:"enumNames"`
	OneOf       []titled    `json:"oneOf"`
	Items       *fieldItems `json:"items"`
	Default     any         `json:"default"`
	Format      string      `json:"format"`
	MinLength   *int        `json:"minLength"`
	MaxLength   *int        `json:"maxLength"`
	Minimum     *float64    `json:"minimum"`
	Maximum     *float64    `json:"maximum"`
	MinItems    *int        `json:"minItems"`
	MaxItems    *int        `json:"maxItems"`
}

type titled struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

type fieldItems struct {
	Enum  []string `json:"enum"`
	AnyOf []titled `json:"anyOf"`
}

// formFields returns the fields, the required ones first and then by name: the
// protocol defines no order.
func formFields(schema any) []field {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil
	}
	var form struct {
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required"`
	}
	if json.Unmarshal(text, &form) != nil {
		return nil
	}
	fields := make([]field, 0, len(form.Properties))
	for _, name := range slices.Sorted(maps.Keys(form.Properties)) {
		f := form.Properties[name]
		f.name, f.required = name, slices.Contains(form.Required, name)
		fields = append(fields, f)
	}
	rank := func(f field) int {
		if i := slices.Index(form.Required, f.name); i >= 0 {
			return i
		}
		return len(form.Required)
	}
	slices.SortStableFunc(fields, func(a, b field) int { return cmp.Compare(rank(a), rank(b)) })
	return fields
}

// leaveOut is the option that skips an optional choice.
const leaveOut = "(leave out)"

// ask asks for the field; given is false if the user left it out.
func (f field) ask(ctx context.Context, asker ask.Asker) (value any, given bool, err error) {
	q := ask.Question{Kind: ask.Text, Text: f.text()}
	options := f.options()
	switch {
	case f.Type == "boolean":
		options = []titled{{"true", "yes"}, {"false", "no"}}
		q.Kind = ask.Select
	case f.Type == "array":
		q.Kind = ask.Multi
	case len(options) > 0:
		q.Kind = ask.Select
	}
	for _, o := range options {
		q.Options = append(q.Options, text.Visible(cmp.Or(o.Title, o.Const)))
	}
	if q.Kind == ask.Select && !f.required {
		q.Options = append(q.Options, leaveOut)
	}
	q.Default, q.HasDefault = f.defaultAnswer(options)
	if q.Kind == ask.Text {
		q.Validate = func(answer string) error {
			if answer == "" && !f.required {
				return nil
			}
			_, err := f.parse(answer)
			return err
		}
		if !f.required && !q.HasDefault {
			q.HasDefault = true // an empty line leaves it out
		}
	}
	answer, err := asker.Ask(ctx, q)
	if err != nil {
		return nil, false, err
	}
	return f.value(q, options, answer)
}

// value returns the value of an answer.
func (f field) value(q ask.Question, options []titled, answer string) (value any, given bool, err error) {
	choice := func(answer string) (string, bool) {
		i := slices.Index(q.Options, answer)
		if i < 0 || i >= len(options) {
			return "", false
		}
		return options[i].Const, true
	}
	switch q.Kind {
	case ask.Select:
		chosen, ok := choice(answer)
		if !ok {
			return nil, false, nil
		}
		if f.Type == "boolean" {
			return chosen == "true", true, nil
		}
		return chosen, true, nil
	case ask.Multi:
		answers, err := ask.SplitAnswers(answer)
		if err != nil {
			return nil, false, err
		}
		list := make([]any, 0, len(answers))
		for _, a := range answers {
			if chosen, ok := choice(a); ok {
				list = append(list, chosen)
			}
		}
		return list, len(list) > 0 || f.required, nil
	}
	if answer == "" && !f.required {
		return nil, false, nil
	}
	value, err = f.parse(answer)
	return value, err == nil, err
}

func (f field) text() string {
	shown := text.Visible(text.Cut(cmp.Or(f.Title, f.name), 200))
	if f.Description != "" {
		shown += ": " + text.Visible(text.Cut(f.Description, 1<<10))
	}
	if !f.required {
		shown += " (optional)"
	}
	return shown
}

func (f field) options() []titled {
	enum, list := f.Enum, f.OneOf
	if f.Items != nil {
		enum, list = f.Items.Enum, f.Items.AnyOf
	}
	for i, c := range enum {
		t := titled{Const: c}
		if i < len(f.EnumNames) {
			t.Title = f.EnumNames[i]
		}
		list = append(list, t)
	}
	return list
}

// defaultAnswer returns the default as an answer.
func (f field) defaultAnswer(options []titled) (string, bool) {
	title := func(v any) (string, bool) {
		for _, o := range options {
			if o.Const == fmt.Sprint(v) {
				return text.Visible(cmp.Or(o.Title, o.Const)), true
			}
		}
		return "", false
	}
	switch v := f.Default.(type) {
	case nil:
		return "", false
	case []any:
		var chosen []string
		for _, item := range v {
			if t, ok := title(item); ok {
				chosen = append(chosen, t)
			}
		}
		return ask.JoinAnswers(chosen), len(chosen) > 0
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	default:
		if len(options) > 0 {
			return title(v)
		}
		return text.Visible(fmt.Sprint(v)), true
	}
}

// parse reads a typed answer.
func (f field) parse(answer string) (any, error) {
	if f.Type != "number" && f.Type != "integer" {
		return answer, f.checkText(answer)
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(answer), 64)
	switch {
	case err != nil || math.IsNaN(n) || math.IsInf(n, 0):
		return nil, errors.New("the answer must be a number")
	case f.Type == "integer" && n != math.Trunc(n):
		return nil, errors.New("the answer must be a whole number")
	case f.Minimum != nil && n < *f.Minimum:
		return nil, fmt.Errorf("the number must be at least %v", *f.Minimum)
	case f.Maximum != nil && n > *f.Maximum:
		return nil, fmt.Errorf("the number must be at most %v", *f.Maximum)
	}
	return n, nil
}

func (f field) checkText(answer string) error {
	length := utf8.RuneCountInString(answer)
	switch {
	case f.MinLength != nil && length < *f.MinLength:
		return fmt.Errorf("the answer must have at least %d characters", *f.MinLength)
	case f.MaxLength != nil && length > *f.MaxLength:
		return fmt.Errorf("the answer must have at most %d characters", *f.MaxLength)
	}
	var err error
	switch f.Format {
	case "email":
		_, err = mail.ParseAddress(answer)
	case "uri":
		var u *url.URL
		if u, err = url.Parse(answer); err == nil && u.Scheme == "" {
			err = errors.New("no scheme")
		}
	case "date":
		_, err = time.Parse(time.DateOnly, answer)
	case "date-time":
		_, err = time.Parse(time.RFC3339, answer)
	}
	if err != nil {
		return fmt.Errorf("the answer must have the form %q", f.Format)
	}
	return nil
}
