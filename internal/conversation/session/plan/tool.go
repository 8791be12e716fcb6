package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// Instructions tell a model what plan mode is.
const Instructions = `## Plan mode
Plan mode is on. Nothing is changed until the user accepts a plan.
- Look around first: read files, search, run programs that read. Tools that change something are not there now, and programs run at the level read only.
- Ask the user about what the task leaves open and only they can decide.
- Then call plan__propose with a plan that another engineer could carry out: what is changed and why, step by step, in the order of the work, with the files and the commands, and how the result is checked.
- The user accepts the plan, changes it, or says what should be different. After an accepted plan, do the work: its steps are your todo list.
If the task needs no change, such as a question, answer it without a plan.`

// Tool is the name of the tool by which a model proposes a plan.
const Tool = "plan__propose"

// Propose is the tool by which a model proposes a plan. Its calls are made again when a run resumes: the decisions are on record.
type Propose struct {
	// Ask puts a question to the user, under a key that no other question of the call has, or returns the recorded answer.
	Ask    func(ctx context.Context, call, key string, q ask.Question) (string, error)
	Accept bool // plans are accepted without a question

	// Record makes the decision of a call, or returns the recorded one.
	Record func(ctx context.Context, call string, decide func(context.Context) (Decision, error)) (Decision, error)
	// Decided is called with each decision, also with a recorded one.
	Decided func(ctx context.Context, d Decision) error
	// Waits is called with a plan about which no user can be asked now.
	Waits func(p Plan)
}

// Declaration implements [tool.Tool].
func (*Propose) Declaration() chat.Tool {
	const texts = `{"type":"array","items":{"type":"string"},"description":`
	return chat.Tool{
		Name: Tool,
		Description: "Propose a plan to the user, who accepts it, changes it, or says what should be different. Call it once you know enough to carry the plan out. " +
			"After an accepted plan, plan mode is over and you do the work.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"title":{"type":"string","description":"What the plan achieves, in a few words."},` +
			`"summary":{"type":"string","description":"What is changed and why, and how the result is checked."},` +
			`"steps":{"type":"array","minItems":1,"maxItems":50,"description":"The steps in the order of the work.","items":{"type":"object","properties":{` +
			`"text":{"type":"string","description":"What is done."},` +
			`"files":` + texts + `"The files that it changes."},` +
			`"commands":` + texts + `"The commands that it runs."}},"required":["text"]}},` +
			`"open":` + texts + `"What is not known yet."}},"required":["title","summary","steps"]}`),
	}
}

// Hints implements [tool.Tool].
func (*Propose) Hints() tool.Hints {
	return tool.Hints{ReadOnly: true, Interactive: true, Stateful: true, Planning: true, Timeout: tool.Unlimited}
}

// Call implements [tool.Tool].
func (t *Propose) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	p, err := tool.Decode[Plan](call)
	if err != nil {
		return tool.Result{}, err
	}
	p = p.clean()
	if err := p.check(); err != nil {
		return tool.Result{}, err
	}
	d, err := t.Record(ctx, call.Key, func(ctx context.Context) (Decision, error) { return t.decide(ctx, call.Key, p) })
	switch {
	case fault.CodeOf(err) == fault.Suspended:
		return tool.Result{}, err
	case errors.Is(err, ask.ErrUnavailable):
		return tool.Result{}, fmt.Errorf("%w, so the plan is not accepted. End your answer with the plan", err)
	case err != nil:
		return tool.Result{}, err
	}
	if err := t.Decided(ctx, d); err != nil {
		return tool.Result{}, err
	}
	out, err := json.Marshal(resultOf(d))
	return tool.Result{Output: string(out)}, err
}

// result is what the model reads.
type result struct {
	Status  string    `json:"status"` // accepted or refused
	Mode    chat.Mode `json:"mode"`
	Message string    `json:"message"`
	Plan    *Plan     `json:"plan,omitempty"` // as the user has changed it
	Reason  string    `json:"reason,omitempty"`
}

func resultOf(d Decision) result {
	if !d.Accepted {
		return result{Status: "refused", Mode: chat.ModePlan, Reason: d.Reason, Message: "The user did not accept the plan. Plan mode is still on: propose a plan that does what they say, or ask."}
	}
	r := result{Status: "accepted", Mode: d.Mode, Message: "Plan mode is over. The steps are your todo list: do the work now, and mark each step with todo__done when it is finished."}
	if d.Edited {
		r.Plan, r.Message = &d.Plan, "The user changed the plan, and accepted it as it is here. "+r.Message
	}
	return r
}

// DescribeCall returns a call of the tool as Markdown: the plan, as the user changed it, below a heading, and what they decided. It is "" if the
// arguments are no plan. Answer is the result of the call, "" for none.
func DescribeCall(arguments, answer string) string {
	var p Plan
	var r result
	if json.Unmarshal([]byte(arguments), &p) != nil || p.clean().check() != nil {
		return ""
	}
	_ = json.Unmarshal([]byte(answer), &r) // of a call that failed it has nothing
	if r.Plan != nil {
		p = *r.Plan
	}
	told := "### Plan: " + strings.TrimPrefix(p.clean().Markdown(), "# ")
	switch r.Status {
	case "accepted":
		return told + "\nThe user accepted this plan.\n"
	case "refused":
		return told + "\nThe user did not accept this plan. " + r.Reason + "\n"
	}
	return told
}

// The answers to a plan.
const (
	accept      = "accept"
	acceptWrite = "accept, and write unasked"
	edit        = "edit"
	refuse      = "no, and say why"
)

// decide has the user decide about a plan. The key names the call.
func (t *Propose) decide(ctx context.Context, key string, p Plan) (Decision, error) {
	if t.Accept {
		return Decision{Plan: p, Accepted: true, Mode: chat.ModeAsk}, nil
	}
	d := Decision{Plan: p}
	for n := 1; ; n++ {
		put := func(what string, q ask.Question) (string, error) {
			q.Subject = "the plan: " + d.Plan.Title
			answer, err := t.Ask(ctx, key, fmt.Sprintf("%s/%d", what, n), q)
			if err != nil {
				t.Waits(d.Plan)
			}
			return answer, err
		}
		const matter = "Accept this plan?"
		answer, err := put("plan", ask.Question{
			Kind: ask.Select, Text: d.Plan.Markdown() + "\n" + matter, Matter: matter, Options: []string{accept, acceptWrite, edit, refuse},
			Consent: true, Affirms: acceptWrite, Lasts: true,
		})
		if err != nil {
			return d, err
		}
		switch answer {
		case accept, acceptWrite:
			d.Accepted, d.Mode = true, chat.ModeAsk
			if answer == acceptWrite {
				d.Mode = chat.ModeWrite
			}
			return d, nil
		case edit:
			changed, err := changeOf(d.Plan, put)
			if err != nil {
				return d, err
			}
			d.Edited = d.Edited || changed.Markdown() != d.Plan.Markdown()
			d.Plan = changed
		default:
			d.Reason, err = put("why", ask.Question{Kind: ask.Text, Text: "What should be different?"})
			d.Reason = strings.TrimSpace(d.Reason)
			return d, err
		}
	}
}

// changeOf has the user change a plan. What cannot be read is asked about again.
func changeOf(p Plan, put func(what string, q ask.Question) (string, error)) (Plan, error) {
	q := ask.Question{Kind: ask.Text, Consent: true, Default: strings.TrimSpace(p.Markdown()), HasDefault: true, Prefilled: true, Validate: func(text string) error {
		_, err := Parse(text)
		return err
	}}
	const how = "Change the plan. Each item of the list is a step."
	q.Text = how
	for what := "edit"; ; what += "/again" {
		answer, err := put(what, q)
		if err != nil {
			return p, err
		}
		changed, err := Parse(answer)
		if changed.Title == "" {
			changed.Title = p.Title
		}
		if err == nil {
			return changed, nil
		}
		q.Text = fmt.Sprintf("The plan cannot be read: %v. %s", err, how)
	}
}
