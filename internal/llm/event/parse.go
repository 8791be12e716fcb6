package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"loki/internal/base/value"
)

// ErrUnknownType is in the chain of the error for an event whose type this program does not know.
var ErrUnknownType = errors.New("an event of a type that is not known")

// Parse reads an event in the form that [Event.MarshalJSON] writes. Its time has microseconds and is in
// UTC. Members that the type does not have are skipped. What has no place in the form is zero: see the
// fields of the bodies without a name in JSON.
func Parse(data []byte) (Event, error) {
	var head struct {
		wire
		durations
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
	k, ok := kinds()[head.Type]
	if !ok {
		return Event{}, fmt.Errorf("reading an event: %w: %q", ErrUnknownType, head.Type)
	}
	if ev.Body, err = k.parse(data, head.durations); err != nil {
		return Event{}, fmt.Errorf("reading an event: %w", err)
	}
	return ev, nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (b *StateUpdated) UnmarshalJSON(data []byte) error {
	var in struct {
		Set    bool        `json:"set"`
		Values value.Value `json:"values"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*b = StateUpdated{Set: in.Set}
	if object := in.Values.AsObject(); object != nil {
		for name, v := range object.All() {
			b.Values = append(b.Values, value.Member{Name: name, Value: v})
		}
	}
	return nil
}
