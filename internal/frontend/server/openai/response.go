package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"loki/internal/base/value"
	"loki/internal/frontend/server/rest"
	"loki/internal/frontend/server/stream"
	"loki/internal/llm/chat"
)

// response is the body of a response.
type response struct {
	ID                 string             `json:"id"`
	Object             string             `json:"object" enum:"response"`
	CreatedAt          int64              `json:"created_at" doc:"seconds since 1970"`
	Status             string             `json:"status" enum:"in_progress,completed,incomplete,failed"`
	Error              *responseError     `json:"error"`
	IncompleteDetails  *incompleteDetails `json:"incomplete_details"`
	Model              string             `json:"model" doc:"as the request names it"`
	Output             []*item            `json:"output" nullable:"false"`
	OutputText         string             `json:"output_text"`
	Usage              *responseUsage     `json:"usage"`
	PreviousResponseID *string            `json:"previous_response_id"`
	Store              bool               `json:"store" doc:"whether a response can follow it"`
	Loki               *said              `json:"loki,omitempty"`

	// As in the request.
	Instructions      *string         `json:"instructions"`
	MaxOutputTokens   *int            `json:"max_output_tokens"`
	Temperature       *float64        `json:"temperature"`
	TopP              *float64        `json:"top_p"`
	Tools             []toolShape     `json:"tools" nullable:"false"`
	ToolChoice        *choiceShape    `json:"tool_choice"`
	ParallelToolCalls bool            `json:"parallel_tool_calls"`
	Text              *textShape      `json:"text,omitempty"`
	Reasoning         *reasoningShape `json:"reasoning,omitempty"`
	Metadata          json.RawMessage `json:"metadata"`
	Truncation        string          `json:"truncation"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incompleteDetails struct {
	Reason string `json:"reason" enum:"max_output_tokens,content_filter"`
}

type responseUsage struct {
	InputTokens   int              `json:"input_tokens"`
	InputDetails  promptDetails    `json:"input_tokens_details"`
	OutputTokens  int              `json:"output_tokens"`
	OutputDetails reasoningDetails `json:"output_tokens_details"`
	TotalTokens   int              `json:"total_tokens"`
}

type reasoningDetails = completionDetails

// item is an item of the output: a message, reasoning, or a call of a function of the client's.
type item struct {
	ID        string  `json:"id"`
	Type      string  `json:"type" enum:"message,reasoning,function_call"`
	Status    string  `json:"status" enum:"in_progress,completed,incomplete"`
	Role      string  `json:"role,omitempty" enum:"assistant"`
	Content   *[]part `json:"content,omitempty" doc:"of a message"`
	Summary   *[]part `json:"summary,omitempty" doc:"of reasoning"`
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
}

// part is a piece of text of an item.
type part struct {
	Type        string    `json:"type" enum:"output_text,summary_text"`
	Text        string    `json:"text"`
	Annotations *[]string `json:"annotations,omitempty" doc:"always empty"`
}

type responseInput struct {
	RunID string `header:"X-Loki-Run-Id" doc:"run of an agent whose question the input answers, as loki.run_id"`
	Body  responseRequest
}

// respond answers POST /v1/responses.
func (s *service) respond(ctx context.Context, in *responseInput) (*rest.Reply, error) {
	w := &in.Body
	r, err := w.request()
	if err != nil {
		return nil, err
	}
	if in.RunID != "" {
		r.Loki.RunID = in.RunID
	}
	if err := s.load(ctx, r); err != nil {
		return nil, err
	}
	k, err := s.keeper(ctx, r, w)
	if err != nil {
		return nil, err
	}
	out := newOutput(r, w, k.id())
	if !r.Stream {
		defer k.close()
		a, err := s.ask(ctx, r, out)
		if err == nil {
			err = k.keep(ctx, a)
		}
		if err != nil {
			return nil, err
		}
		res, err := out.finish(ctx, a)
		return rest.JSON(0, res), err
	}
	return rest.Stream(func(ctx context.Context, stream *stream.Writer) error {
		defer k.close()
		out.w = stream
		if err := out.begin(ctx); err != nil {
			return err
		}
		a, err := s.ask(ctx, r, out)
		if err == nil {
			err = k.keep(ctx, a)
		}
		if err == nil {
			_, err = out.finish(ctx, a)
		}
		if err != nil {
			return out.fail(ctx, err, s.app.Hide)
		}
		return nil
	}), nil
}

// output puts an answer into items, and sends the events about them if it is streamed. It is a [listener].
type output struct {
	w      *stream.Writer // nil if the answer is in one piece
	res    response
	at     int    // of the open item in the output
	so     string // the text of the open item so far
	kind   string // of the open item; "" for none
	number int    // of the event that is sent next
}

func newOutput(r *request, w *responseRequest, id string) *output {
	metadata := w.Metadata
	if len(metadata) == 0 {
		metadata = json.RawMessage("{}")
	}
	return &output{res: response{
		ID: id, Object: "response", CreatedAt: time.Now().Unix(), Status: "in_progress", Model: r.Model, Output: []*item{},
		PreviousResponseID: w.PreviousResponseID, Store: w.Store == nil || *w.Store, Instructions: w.Instructions, MaxOutputTokens: w.MaxOutputTokens,
		Temperature: w.Temperature, TopP: w.TopP, Tools: append([]toolShape{}, w.Tools...), ToolChoice: cmp.Or(w.ToolChoice, &choiceShape{choiceObject{Type: "auto"}}),
		ParallelToolCalls: !r.OneCall, Text: cmp.Or(w.Text, &textShape{Format: &formatShape{Type: "text"}}), Reasoning: w.Reasoning, Metadata: metadata, Truncation: "disabled",
	}}
}

// responseEvent is an event of a stream. The members that its type does not have are left out.
type responseEvent struct {
	Type         string    `json:"type"`
	Number       int       `json:"sequence_number"`
	Response     *response `json:"response,omitempty"`
	OutputIndex  *int      `json:"output_index,omitempty"`
	Item         *item     `json:"item,omitempty"`
	ItemID       string    `json:"item_id,omitempty"`
	ContentIndex *int      `json:"content_index,omitempty"`
	SummaryIndex *int      `json:"summary_index,omitempty"`
	Part         *part     `json:"part,omitempty"`
	Delta        *string   `json:"delta,omitempty"`
	Text         *string   `json:"text,omitempty"`
	Name         string    `json:"name,omitempty"`
	Arguments    *string   `json:"arguments,omitempty"`
	Logprobs     *[]string `json:"logprobs,omitempty"`
}

// send sends an event if the answer is streamed.
func (o *output) send(ctx context.Context, e responseEvent) error {
	if o.w == nil {
		return nil
	}
	e.Number = o.number
	o.number++
	data, err := value.Marshal(e)
	if err != nil {
		return err
	}
	return o.w.Send(ctx, stream.Event{Name: e.Type, Data: data})
}

// about returns an event about the open item.
func (o *output) about(kind string) responseEvent {
	return responseEvent{Type: kind, OutputIndex: new(o.at), ItemID: o.res.Output[o.at].ID}
}

// inText is about, for the text of the open item.
func (o *output) inText(message, reasoning string) responseEvent {
	if o.kind == "reasoning" {
		e := o.about("response." + reasoning)
		e.SummaryIndex = new(0)
		return e
	}
	e := o.about("response." + message)
	e.ContentIndex = new(0)
	return e
}

// begin opens the stream.
func (o *output) begin(ctx context.Context) error {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		if err := o.send(ctx, responseEvent{Type: kind, Response: &o.res}); err != nil {
			return err
		}
	}
	return nil
}

// open begins an item with text, unless it is open.
func (o *output) open(ctx context.Context, kind string) error {
	if o.kind == kind {
		return nil
	}
	if err := o.shut(ctx); err != nil {
		return err
	}
	i := &item{Type: kind, Status: "in_progress", ID: newID("rs_"), Summary: &[]part{}}
	if kind == "message" {
		i.ID, i.Role, i.Content, i.Summary = newID("msg_"), "assistant", &[]part{}, nil
	}
	o.kind, o.so, o.at = kind, "", len(o.res.Output)
	o.res.Output = append(o.res.Output, i)
	if err := o.addOutput(ctx); err != nil {
		return err
	}
	e := o.inText("content_part.added", "reasoning_summary_part.added")
	e.Part = o.part()
	return o.send(ctx, e)
}

func (o *output) addOutput(ctx context.Context) error {
	e := o.about("response.output_item.added")
	e.Item, e.ItemID = o.res.Output[o.at], ""
	return o.send(ctx, e)
}

// part returns the text of the open item.
func (o *output) part() *part {
	if o.kind == "reasoning" {
		return &part{Type: "summary_text", Text: o.so}
	}
	return &part{Type: "output_text", Text: o.so, Annotations: &[]string{}}
}

// shut ends the open item, if there is one.
func (o *output) shut(ctx context.Context) error {
	if o.kind == "" {
		return nil
	}
	i, p := o.res.Output[o.at], o.part()
	done := o.inText("output_text.done", "reasoning_summary_text.done")
	done.Text = &p.Text
	if o.kind == "message" {
		i.Content, done.Logprobs = &[]part{*p}, &[]string{}
		o.res.OutputText += p.Text
	} else {
		i.Summary = &[]part{*p}
	}
	partDone := o.inText("content_part.done", "reasoning_summary_part.done")
	partDone.Part = p
	o.kind = ""
	return errors.Join(o.send(ctx, done), o.send(ctx, partDone), o.itemDone(ctx))
}

func (o *output) itemDone(ctx context.Context) error {
	i := o.res.Output[o.at]
	i.Status = "completed"
	e := o.about("response.output_item.done")
	e.Item, e.ItemID = i, ""
	return o.send(ctx, e)
}

// piece adds a piece of text to the item of a kind.
func (o *output) piece(ctx context.Context, kind, text string) error {
	if err := o.open(ctx, kind); err != nil {
		return err
	}
	o.so += text
	e := o.inText("output_text.delta", "reasoning_summary_text.delta")
	if e.Delta = &text; kind == "message" {
		e.Logprobs = &[]string{}
	}
	return o.send(ctx, e)
}

func (o *output) text(ctx context.Context, piece string) error { return o.piece(ctx, "message", piece) }

func (o *output) reasoning(ctx context.Context, piece string) error {
	return o.piece(ctx, "reasoning", piece)
}

// began sends the response again, with the run.
func (o *output) began(ctx context.Context, s said) error {
	o.res.Loki = &s
	return o.send(ctx, responseEvent{Type: "response.in_progress", Response: &o.res})
}

// call adds a call of a function of the client's.
func (o *output) call(ctx context.Context, c chat.ToolCall) error {
	i := &item{Type: "function_call", Status: "in_progress", ID: newID("fc_"), CallID: c.ID, Name: c.Name, Arguments: new("")}
	o.at = len(o.res.Output)
	o.res.Output = append(o.res.Output, i)
	if err := o.addOutput(ctx); err != nil {
		return err
	}
	i.Arguments = &c.Arguments
	piece, done := o.about("response.function_call_arguments.delta"), o.about("response.function_call_arguments.done")
	piece.Delta, done.Arguments, done.Name = i.Arguments, i.Arguments, c.Name
	return errors.Join(o.send(ctx, piece), o.send(ctx, done), o.itemDone(ctx))
}

// finish returns the response, and ends the stream.
func (o *output) finish(ctx context.Context, a answer) (*response, error) {
	if len(o.res.Output) == 0 && len(a.Calls) == 0 {
		if err := o.open(ctx, "message"); err != nil {
			return nil, err
		}
	}
	if err := o.shut(ctx); err != nil {
		return nil, err
	}
	for _, c := range a.Calls {
		if err := o.call(ctx, c); err != nil {
			return nil, err
		}
	}
	o.res.Status, o.res.Loki = "completed", &a.Loki
	if a.Loki.Question != nil { // the response that follows this one answers it
		o.res.ID = newID(runIDPrefix + a.Loki.RunID + "_") // a run may ask again and again
	}
	o.res.Usage = &responseUsage{
		InputTokens: a.Usage.InputTokens, InputDetails: promptDetails{a.Usage.CachedInputTokens}, OutputTokens: a.Usage.OutputTokens,
		OutputDetails: reasoningDetails{a.Usage.ReasoningTokens}, TotalTokens: a.Usage.Total(),
	}
	if a.Stop == chat.StopLength {
		o.res.Status, o.res.IncompleteDetails = "incomplete", &incompleteDetails{"max_output_tokens"}
	}
	return &o.res, o.send(ctx, responseEvent{Type: "response." + o.res.Status, Response: &o.res})
}

// fail ends a stream that failed with err, of which hide leaves out secrets. It returns err, marked as sent if it is.
func (o *output) fail(ctx context.Context, err error, hide func(string) string) error {
	e := rest.FromError(ctx, err)
	o.res.Status, o.res.Error = "failed", &responseError{e.Code, hide(e.Message)}
	if o.send(context.WithoutCancel(ctx), responseEvent{Type: "response.failed", Response: &o.res}) != nil {
		return err
	}
	return rest.MarkSent(err)
}

// previousNotFound returns the error of a response that none can follow.
func previousNotFound(id string) *rest.Error {
	return &rest.Error{
		Status: http.StatusNotFound, Code: "previous_response_not_found", Param: "previous_response_id", Message: "there is no response " + id + " that another response can continue",
		Hint: "a response with store: false, and that of a graph agent, is not kept: send what was said before in input",
	}
}
