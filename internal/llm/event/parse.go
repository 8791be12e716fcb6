package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"loki/internal/base/value"
)

// ErrUnknownType is in the chain of the error for an event whose type this program does not know.
var ErrUnknownType = errors.New("an event of a type that is not known")

// Parse reads an event in the form that [Event.MarshalJSON] writes. Its time has microseconds and is in
// UTC. Members that the type does not have are passed over. What has no place in the form is zero: see the
// fields of the bodies without a name in JSON.
func Parse(data []byte) (Event, error) {
	var head struct {
		wire
		Seconds float64 `json:"seconds"`
		Wait    float64 `json:"wait_seconds"`
		Left    float64 `json:"left_seconds"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Event{}, fmt.Errorf("reading an event: %w", err)
	}
	ev := Event{Source: Source{
		Run: head.Run, Agent: head.Agent, AgentID: head.AgentID, Depth: head.Depth, Step: head.Step, Node: head.Node, Item: head.Item, Within: head.Within,
	}}
	var err error
	if ev.Time, err = time.Parse(time.RFC3339Nano, head.Time); err != nil {
		return Event{}, fmt.Errorf("reading an event: %w", err)
	}
	if ev.Body, err = parseBody(head.Type, data); err != nil {
		return Event{}, fmt.Errorf("reading an event: %w", err)
	}
	switch b := ev.Body.(type) {
	case NodeFinished:
		b.Duration = duration(head.Seconds)
		ev.Body = b
	case Retry:
		b.Wait = duration(head.Wait)
		ev.Body = b
	case IndexProgress:
		b.Elapsed, b.Left = duration(head.Seconds), duration(head.Left)
		ev.Body = b
	case IndexFinished:
		b.Duration = duration(head.Seconds)
		ev.Body = b
	case Retrieved:
		b.Duration = duration(head.Seconds)
		ev.Body = b
	case Finished:
		b.Duration = duration(head.Seconds)
		ev.Body = b
	}
	return ev, nil
}

// duration is the reverse of seconds.
func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}

// parseBody reads the body of an event of a type, without its durations.
func parseBody(typ string, data []byte) (Body, error) {
	switch typ {
	case Delta{}.Type():
		return read[Delta](data)
	case Reasoning{}.Type():
		return read[Reasoning](data)
	case ModelCall{}.Type():
		return read[ModelCall](data)
	case Reply{}.Type():
		return read[Reply](data)
	case ToolCall{}.Type():
		return read[ToolCall](data)
	case ToolResult{}.Type():
		return read[ToolResult](data)
	case ToolOutput{}.Type():
		return read[ToolOutput](data)
	case StepStarted{}.Type():
		return read[StepStarted](data)
	case StepFinished{}.Type():
		return read[StepFinished](data)
	case NodeStarted{}.Type():
		return read[NodeStarted](data)
	case NodeFinished{}.Type():
		return read[NodeFinished](data)
	case MapProgress{}.Type():
		return read[MapProgress](data)
	case Started{}.Type():
		return read[Started](data)
	case Finished{}.Type():
		return read[Finished](data)
	case Question{}.Type():
		return read[Question](data)
	case Undoing{}.Type():
		return read[Undoing](data)
	case Waiting{}.Type():
		return read[Waiting](data)
	case Signal{}.Type():
		return read[Signal](data)
	case Answer{}.Type():
		return read[Answer](data)
	case Retry{}.Type():
		return read[Retry](data)
	case Warning{}.Type():
		return read[Warning](data)
	case Request{}.Type():
		return read[Request](data)
	case CompressionStarted{}.Type():
		return read[CompressionStarted](data)
	case CompressionFinished{}.Type():
		return read[CompressionFinished](data)
	case SessionNamed{}.Type():
		return read[SessionNamed](data)
	case ServersStarting{}.Type():
		return read[ServersStarting](data)
	case ServersStarted{}.Type():
		return read[ServersStarted](data)
	case AgentWaits{}.Type():
		return read[AgentWaits](data)
	case TodoUpdated{}.Type():
		return read[TodoUpdated](data)
	case AutoContinue{}.Type():
		return read[AutoContinue](data)
	case MessageSent{}.Type():
		return read[MessageSent](data)
	case TaskUpdated{}.Type():
		return read[TaskUpdated](data)
	case Escalation{}.Type():
		return read[Escalation](data)
	case EscalationAnswered{}.Type():
		return read[EscalationAnswered](data)
	case IndexStarted{}.Type():
		return read[IndexStarted](data)
	case IndexProgress{}.Type():
		return read[IndexProgress](data)
	case IndexFinished{}.Type():
		return read[IndexFinished](data)
	case Retrieved{}.Type():
		return read[Retrieved](data)
	case StateUpdated{}.Type():
		return parseState(data)
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknownType, typ)
}

func read[B Body](data []byte) (Body, error) {
	var b B
	err := json.Unmarshal(data, &b)
	return b, err
}

// parseState reads the body of an event that holds a part of a state.
func parseState(data []byte) (Body, error) {
	var b struct {
		Set    bool        `json:"set"`
		Values value.Value `json:"values"`
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, err
	}
	var values []value.Member
	if object := b.Values.AsObject(); object != nil {
		for name, v := range object.All() {
			values = append(values, value.Member{Name: name, Value: v})
		}
	}
	return StateUpdated{Set: b.Set, Values: slices.Clip(values)}, nil
}
