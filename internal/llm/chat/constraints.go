package chat

// Constraints are what a caller asks of the replies to one question, beside how the model chooses its
// words. The zero value asks for nothing.
type Constraints struct {
	// Stop are texts at which a reply ends: it has what comes before the first of them.
	Stop []string `json:"stop,omitempty"`
	// Seed has a provider that knows seeds choose the same words each time, as far as it can. Nil is none.
	Seed *int64 `json:"seed,omitempty"`
	// FrequencyPenalty and PresencePenalty, from -2 to 2, have the model repeat itself less: in proportion to how
	// often the reply has a word, and by whether it has it. 0 is none, less than 0 has it repeat more.
	FrequencyPenalty float64 `json:"frequency_penalty,omitempty"`
	PresencePenalty  float64 `json:"presence_penalty,omitempty"`
	// Choice says which tool the first reply has to call.
	Choice ToolChoice `json:"tool_choice,omitzero"`
}

// Penalizes reports whether there is a penalty.
func (c Constraints) Penalizes() bool { return c.FrequencyPenalty != 0 || c.PresencePenalty != 0 }

// ToolChoice says whether a reply has to call a tool. The zero value leaves it to the model.
type ToolChoice struct {
	Required bool   `json:"required,omitempty"`
	Name     string `json:"name,omitempty"` // the tool to call, if Required is set; empty for any
}
